/**
 * `node bench/overload.mjs [--mix mixed|chat | --fairness] [--short] [--write]`: see docs/overload.md. `--short`: ten seconds of overload instead of a minute.
 * `--write`: puts the report into docs/overload.md. Exit code 0: every target is met, 1: one is missed, 2: the
 * run is void.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { FairnessRun, fairnessReport } from './overload/fairness.mjs'
import { MIXES } from './overload/load-mix.mjs'
import { OverloadRun } from './overload/overload-run.mjs'
import { overloadReport } from './overload/overload-report.mjs'
import { stopAll } from './processes.mjs'
import { GATEWAY_SCRIPT } from './session.mjs'

const { values: options } = parseArgs({
  options: {
    mix: { type: 'string', default: 'mixed' },
    fairness: { type: 'boolean' },
    short: { type: 'boolean' },
    write: { type: 'boolean' },
  },
})

const FULL = {
  warmUpMs: 8_000,
  closedMs: 6_000,
  openMs: 12_000,
  overloadMs: 60_000,
  recoveryMs: 12_000,
  floodMs: 20_000,
}
const SHORT = {
  warmUpMs: 5_000,
  closedMs: 3_000,
  openMs: 4_000,
  overloadMs: 10_000,
  recoveryMs: 11_000,
  floodMs: 8_000,
}

const DOCUMENT = fileURLToPath(new URL('../docs/overload.md', import.meta.url))
const outputOf = (options) =>
  new RegExp(`(<!-- output of npm run overload -- ${options} -->\\n+\`\`\`text\\n)[^]*?(\\n\`\`\`\\n)`)

async function main() {
  if (!existsSync(GATEWAY_SCRIPT)) throw new Error('dist/main.js is missing: run `npm run build` first')
  if (!Object.hasOwn(MIXES, options.mix)) throw new Error(`--mix is one of ${Object.keys(MIXES).join(', ')}`)
  const plan = options.short === true ? SHORT : FULL
  const isFairness = options.fairness === true
  const { text, code } = isFairness
    ? fairnessReport(await new FairnessRun(plan).run())
    : overloadReport(await new OverloadRun(plan, options.mix).run())
  console.log(text)
  if (options.write === true) {
    writeFileSync(
      DOCUMENT,
      readFileSync(DOCUMENT, 'utf8').replace(
        outputOf(isFairness ? '--fairness' : `--mix ${options.mix}`),
        (_, before, after) => before + text + after,
      ),
    )
  }
  return code
}

async function end(code) {
  await stopAll()
  process.exit(code)
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => end(1))
try {
  await end(await main())
} catch (error) {
  console.error(`BROKEN: ${error.stack}`)
  await end(1)
}
