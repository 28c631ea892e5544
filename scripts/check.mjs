// `npm test`: everything a change must pass, on two cores. Lint takes as long as the other checks together, so they run side
// by side; the tests begin when those are over. A build that fails ends all; any other check stops none: one run tells all faults.
// With names, as in `node scripts/check.mjs lint types`, only these.
import { spawn } from 'node:child_process'

const SIDE_BY_SIDE = [['lint'], ['format:check', 'types', 'rules', 'documents:check', 'jest']]
const FIRST = 'build'
/** Its output is shown as it comes; that of the others in one piece, when it is over. */
const LIVE = 'jest'

const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => ![FIRST, ...SIDE_BY_SIDE.flat()].includes(name))
if (unknown.length > 0) throw new Error(`There is no check ${unknown.join(', ')}.`)
const isWanted = (name) => wanted.length === 0 || wanted.includes(name)
const passed = []
const failed = []

function run(name) {
  const startedAt = performance.now()
  const child = spawn('npm', ['run', '--silent', name], {
    stdio: name === LIVE ? 'inherit' : ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (output += chunk))
  return new Promise((resolve) => {
    child.on('close', (code) => {
      const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
      ;(code === 0 ? passed : failed).push(name)
      console.log(
        `${code === 0 ? 'ok    ' : 'FAILED'} ${name} (${seconds} s)${output.trim() === '' ? '' : `\n${output.trim()}`}\n`,
      )
      resolve()
    })
  })
}

async function runInTurn(names) {
  for (const name of names.filter(isWanted)) await run(name)
}

await runInTurn([FIRST])
if (failed.length === 0) await Promise.all(SIDE_BY_SIDE.map(runInTurn))
console.log(`Checks: ${passed.length} passed, ${failed.length} failed${failed.map((name) => ` ${name}`).join(',')}`)
process.exitCode = failed.length === 0 ? 0 : 1
