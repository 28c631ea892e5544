// `npm run soak -- --minutes 3 --store embedded|postgres --seed 1`: the long form of test/e2e/soak.e2e.spec.ts. Without
// --store both stores have their turn. docs/operations.md says what it looks for.
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'

const STORES = ['embedded', 'postgres']

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '3' }, store: { type: 'string' }, seed: { type: 'string' } },
})
const { minutes, store, seed } = values
if (!(Number(minutes) > 0) || (seed !== undefined && !/^\d+$/.test(seed))) {
  throw new Error('--minutes takes a number above 0, --seed a whole number.')
}
if (store !== undefined && !STORES.includes(store)) throw new Error(`--store takes one of ${STORES.join(', ')}.`)

const JEST = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', 'node_modules/jest/bin/jest.js']
const { status } = spawnSync(process.execPath, [...JEST, '--testMatch', '**/test/soak/soak.long.ts'], {
  stdio: 'inherit',
  env: {
    ...process.env,
    SOAK_MINUTES: minutes,
    ...(store === undefined ? {} : { SOAK_STORE: store }),
    ...(seed === undefined ? {} : { SOAK_SEED: seed }),
  },
})
process.exitCode = status ?? 1
