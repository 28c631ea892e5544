// A virtual environment with packages of PyPI, for tools that are written in Python.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const lastLine = (text) => text.trim().split('\n').at(-1) ?? ''

/** Runs a program to its end; its output, or an Error with the last line of it. */
function run(program, parameters) {
  const { status, stdout, stderr, error } = spawnSync(program, parameters, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${program} ${parameters.join(' ')}: ${error?.message ?? lastLine(stderr)}`)
  return stdout
}

/**
 * Calls back with the path of a program of the environment: `programOf('pip')`; the environment is gone afterwards. Where there is
 * no Python, no pip or no PyPI, prints `NOT RUN` and why, and gives back `undefined`: none of them is needed to build the gateway.
 */
export async function withPython(requirements, use) {
  const directory = await mkdtemp(join(tmpdir(), 'gateway-python-'))
  const programOf = (name) => join(directory, 'bin', name)
  try {
    try {
      run('python3', ['-m', 'venv', directory])
      run(programOf('pip'), ['install', '--quiet', '--disable-pip-version-check', ...requirements])
    } catch (error) {
      console.log(`NOT RUN: ${error.message}`)
      return undefined
    }
    return await use(programOf, directory)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** Runs a program to its end, with this process free to serve it meanwhile; its exit code. */
export async function exitOf(program, parameters, options) {
  const [code] = await once(spawn(program, parameters, { ...options, stdio: 'inherit' }), 'exit')
  return code ?? 1
}
