// Lints openapi.json with Redocly and Spectral, which npx fetches: they are four times as large as everything that the tests of the
// gateway need. Prints `NOT RUN` where the registry cannot be reached. Fails on errors; a WebSocket has no 2xx, which both warn of.
import { spawnSync } from 'node:child_process'

const LINTERS = [
  ['@redocly/cli@2.77.0', ['redocly', 'lint', 'openapi.json']],
  ['@stoplight/spectral-cli@6.16.3', ['spectral', 'lint', '--fail-severity=error', 'openapi.json']],
]

const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }

/** The package is fetched first, so that a registry out of reach is told from a fault. */
const npx = (name, words, stdio) => spawnSync('npx', ['--yes', '--package', name, ...words], { env, stdio })

for (const [name, words] of LINTERS) {
  if (npx(name, ['true'], 'ignore').status !== 0) {
    console.log(`NOT RUN: ${name} cannot be fetched`)
    continue
  }
  if (npx(name, words, 'inherit').status !== 0) {
    console.error(`${name} has found errors in openapi.json`)
    process.exitCode = 1
  }
}
