// `npm test`: everything a change must pass. A build that fails ends all, as the other checks run what is built; any other check
// stops none: one run tells all faults. With names, as in `node scripts/check.mjs lint rules`, only these.
import { spawnSync } from 'node:child_process'

const CHECKS = ['build', 'format:check', 'lint', 'rules', 'documents:check', 'jest']

const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !CHECKS.includes(name))
if (unknown.length > 0) throw new Error(`There is no check ${unknown.join(', ')}.`)
const failed = []
const outcomes = []

for (const name of CHECKS.filter((check) => wanted.length === 0 || wanted.includes(check))) {
  if (failed.includes('build')) break
  const startedAt = performance.now()
  const { status } = spawnSync('npm', ['run', '--silent', name], { stdio: 'inherit' })
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  if (status !== 0) failed.push(name)
  outcomes.push(`${status === 0 ? 'ok    ' : 'FAILED'} ${name} (${seconds} s)`)
}

console.log(`\n${outcomes.join('\n')}`)
console.log(
  `Checks: ${outcomes.length - failed.length} passed, ${failed.length} failed${failed.map((name) => ` ${name}`).join(',')}`,
)
process.exitCode = failed.length === 0 ? 0 : 1
