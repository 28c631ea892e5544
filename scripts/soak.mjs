// `npm run soak -- --minutes 3 --store embedded|postgres --seed 1`: the long form of test/e2e/soak.e2e.spec.ts. Without
// --store both stores have their turn. `npm run soak -- --mixed --minutes 30 --seed 1`: the long form of
// test/e2e/soak-mixed.e2e.spec.ts, with PostgreSQL, Redis, scrapes and traces; without --store on Debian's PostgreSQL where
// there is one, otherwise on the embedded store. docs/operations.md and docs/soak.md say what they look for.
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'

const STORES = ['embedded', 'postgres']

const { values } = parseArgs({
  options: {
    minutes: { type: 'string' },
    store: { type: 'string' },
    seed: { type: 'string' },
    mixed: { type: 'boolean', default: false },
  },
})
const { store, seed, mixed, minutes = mixed ? '30' : '3' } = values
if (!(Number(minutes) > 0) || (seed !== undefined && !/^\d+$/.test(seed))) {
  throw new Error('--minutes takes a number above 0, --seed a whole number.')
}
if (store !== undefined && !STORES.includes(store)) throw new Error(`--store takes one of ${STORES.join(', ')}.`)

const JEST = 'node_modules/jest/bin/jest.js'
const SUITE = mixed ? '**/test/soak/mixed/mixed.long.ts' : '**/test/soak/soak.long.ts'
const { status } = spawnSync(process.execPath, [JEST, '--testMatch', SUITE], {
  stdio: 'inherit',
  env: {
    ...process.env,
    SOAK_MINUTES: minutes,
    ...(store === undefined ? {} : { SOAK_STORE: store }),
    ...(seed === undefined ? {} : { SOAK_SEED: seed }),
  },
})
process.exitCode = status ?? 1
