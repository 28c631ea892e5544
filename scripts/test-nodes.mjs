/**
 * `npm run test:nodes [-- <paths and options of jest>]`: the suites, unit, e2e and contracts without arguments, on the newer Nodes that npm has for
 * this machine. One that cannot be installed is NOT RUN. Exit code 1 when a suite fails.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'

const VERSIONS = ['22', '24']
const SUITES = ['src', 'packages', 'test/e2e', 'test/contracts', '--testPathIgnorePatterns', 'integration.spec']
/**
 * Suites open and close many embedded stores in one process. V8 keeps account of pages with code by memory protection keys, and ends a process of
 * newer Nodes now and then where WebAssembly comes and goes in several threads (`Check failed: jit_page.has_value()`).
 */
const JEST = ['--max-semi-space-size=64', '--no-memory-protection-keys', 'node_modules/jest/bin/jest.js']

const wanted = process.argv.slice(2)
const folder = mkdtempSync(join(tmpdir(), 'gateway-nodes-'))

/** The Node of this version, out of the package that npm has for each platform; undefined where there is none. */
function install(version) {
  const prefix = join(folder, version)
  const name = `node-${process.platform}-${process.arch}`
  const parameters = ['install', '--no-audit', '--no-fund', '--no-save', '--prefix', prefix, `${name}@${version}`]
  const { status } = spawnSync('npm', parameters, { stdio: ['ignore', 'ignore', 'inherit'] })
  return status === 0 ? join(prefix, 'node_modules', name, 'bin', 'node') : undefined
}

function run(node) {
  // What a test starts by its name is this Node, too.
  const PATH = `${dirname(node)}${delimiter}${process.env.PATH}`
  const parameters = [...JEST, ...(wanted.length > 0 ? wanted : SUITES)]
  return spawnSync(node, parameters, { stdio: 'inherit', env: { ...process.env, PATH } }).status === 0
}

try {
  for (const version of VERSIONS) {
    const node = install(version)
    const outcome = node === undefined ? 'NOT RUN, it could not be installed' : run(node) ? 'passed' : 'FAILED'
    console.log(`Node ${version}: ${outcome}`)
    if (outcome === 'FAILED') process.exitCode = 1
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
