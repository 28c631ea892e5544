// `npm run bench:costs`: what limits add to a call, what counting it for the metrics and recording its usage add, what a
// translation to another dialect adds, and what a scrape takes, in CPU time of this process. Nothing is sent: requests begin and end through the gateway's own request hooks.
// With REDIS_URL limits are also counted there, under names that no key of a gateway has.
import { createApplication } from '../dist/app/create-app.js'
import { ENDPOINTS } from '../dist/app/capabilities.js'
import { PROVIDERS } from '../dist/app/providers.js'
import { AttemptRecord, RequestContext } from '../dist/core/request-context.js'
import { RateLimiter } from '../dist/limits/rate-limiter.js'
import { RequestHooks } from '../dist/observability/request-hooks.js'
import { KnownRoutes } from '../dist/observability/routes.js'
import { createLogging } from '../dist/observability/logger.js'
import { Metrics } from '../dist/observability/metrics.js'
import { parseConfig } from '../dist/config/load-config.js'
import { ConfigStore } from '../dist/config/config-store.js'
import { AttemptMetrics, RequestMetrics } from '../dist/observability/request-metrics.js'
import { PriceTable } from '../dist/usage/prices.js'
import { entryFromRequest } from '../dist/usage/usage-entry.js'
import { UsageSettlement } from '../dist/usage/usage-queue.js'
import { scratchDirectory } from './processes.mjs'
import { median } from './statistics.mjs'
import { translationCosts } from './translation-costs.mjs'

const ROUNDS = 15
const CALLS = 60_000
const REDIS_CALLS = 6_000
/** Under way at once where something is waited for. */
const CONCURRENCY = 32
const SCRAPES = 200
const RECORDS_AT_ONCE = 50

const CHANNELS = [{ id: 'bench', provider: 'p1', baseUrl: 'http://127.0.0.1:9', credentials: 'none' }]
const LIMITS = { requestsPerMinute: 1e9, tokensPerMinute: 1e12, concurrency: 1e6 }
const LIMITED = { keyId: 'bench-call-costs', limits: LIMITS }
const UNLIMITED = { keyId: 'bench-call-costs' }
const EXPECTED = { tokens: 300, unboundedAnswers: 1 }
const USAGE = { units: { prompt_tokens: 300, completion_tokens: 200, total_tokens: 500 }, estimated: false }
const CHAT_PATH = '/v1/chat/completions'
const OUTCOME = { status: 200, left: false, totalMs: 3, gatewayMs: 1 }

async function startApplication(sections = {}) {
  process.env.GATEWAY_DATA = scratchDirectory()
  const config = parseConfig(JSON.stringify({ channels: CHANNELS, ...sections }), {}, PROVIDERS)
  return createApplication({ config, logging: createLogging('fatal', { write: () => undefined }), sandbox: false })
}

/** A chat call as it is when its key is known. */
function callOf(caller) {
  const call = new RequestContext('bench', 'POST', CHAT_PATH, performance.now(), ENDPOINTS.find(CHAT_PATH))
  call.caller = caller
  return call
}

/** As it is when its answer is over. */
function finish({ log }) {
  Object.assign(log, { model: 'gpt-4o-mini', modelClass: 'chat', channelId: 'bench' })
  const record = new AttemptRecord('bench', 0)
  log.attempts.push(Object.assign(record, { endedAtMs: 2, upstreamMs: 2, firstByteMs: 2 }))
  log.usage = USAGE
}

const microsecondsNow = () => {
  const { user, system } = process.cpuUsage()
  return user + system
}

/** CPU time of one call in µs; `serve` may give a promise. */
async function costOf(serve, calls, concurrency = 1) {
  const startedAt = microsecondsNow()
  let left = calls
  const work = async () => {
    while (left-- > 0) {
      const served = serve()
      if (served !== undefined) await served
    }
  }
  await Promise.all(Array.from({ length: concurrency }, work))
  return (microsecondsNow() - startedAt) / calls
}

/** The median over pairs of slots, one right after the other, of what the second adds to the first. */
async function addedBy(without, withIt, calls, concurrency) {
  const added = []
  for (let round = -2; round < ROUNDS; round++) {
    const base = await costOf(without, calls, concurrency)
    const whole = await costOf(withIt, calls, concurrency)
    // The first are for compiling.
    if (round >= 0) added.push(whole - base)
  }
  return median(added)
}

async function limitCost(sections, calls, concurrency) {
  const application = await startApplication(sections)
  const gate = application.get(RateLimiter, { strict: false })
  const endings = application.get(RequestHooks, { strict: false })
  const endOf = (call) => {
    finish(call)
    endings.over(call, OUTCOME)
  }
  const serve = (caller) => () => {
    const call = callOf(caller)
    const begun = gate.begin(call)
    if (begun === true) {
      const expecting = call.quota?.reserveEstimate(EXPECTED)
      return expecting === undefined ? endOf(call) : expecting.then(() => endOf(call))
    }
    return begun.then(() => call.quota.reserveEstimate(EXPECTED)).then(() => endOf(call))
  }
  if (sections.redis !== undefined && !gate.isShared) throw new Error('Redis does not answer at REDIS_URL.')
  const added = await addedBy(serve(UNLIMITED), serve(LIMITED), calls, concurrency)
  await application.close()
  return added
}

/** The end of a request, without hooks and with the hooks that count. */
async function countingCost(application) {
  const endings = new RequestHooks()
  const known = application.get(KnownRoutes, { strict: false })
  new RequestMetrics(known, endings, new Metrics())
  new AttemptMetrics(application.get(ConfigStore, { strict: false }), endings, new Metrics())
  const tell = (listeners) => () => {
    const call = callOf(UNLIMITED)
    listeners.begun(call)
    finish(call)
    listeners.over(call, OUTCOME)
  }
  return addedBy(tell(new RequestHooks()), tell(endings), CALLS)
}

/** A call that is over, and the same with its record made and priced, as many at a time as the ledger makes. */
async function recordingCost(application) {
  const settlement = application.get(UsageSettlement, { strict: false })
  const prices = new PriceTable(application.get(ConfigStore, { strict: false }).current.prices)
  const end = () => {
    const call = callOf(UNLIMITED)
    finish(call)
    return call
  }
  let notes = []
  const record = () => {
    if (notes.push(entryFromRequest(end(), OUTCOME, prices)) < RECORDS_AT_ONCE) return
    const records = settlement.settled(notes, true)
    if (records.some(({ pricing }) => pricing !== 'priced')) throw new Error('A record is not priced.')
    notes = []
  }
  return addedBy(() => void end(), record, CALLS)
}

const shown = (name, value, unit) => console.log(`${name.padEnd(34)} ${value.toFixed(1).padStart(6)} ${unit}`)

const application = await startApplication({ prices: [{ models: ['*'], promptTokens: 2.5, completionTokens: 10 }] })
shown('recording the usage of a call', await recordingCost(application), 'µs')
shown('counting a call for the metrics', await countingCost(application), 'µs')
const metrics = application.get(Metrics, { strict: false })
shown('a scrape', (await costOf(() => metrics.collectText(), SCRAPES)) / 1000, 'ms')
await application.close()
shown('limits of a call, in memory', await limitCost({}, CALLS), 'µs')
for (const { name, callUs, eventUs } of translationCosts()) {
  shown(`${name}, 1 KB`, callUs, 'µs')
  shown(`${name}, an event`, eventUs, 'µs')
}
const { REDIS_URL } = process.env
if (REDIS_URL === undefined) console.log('limits of a call, in Redis           not measured: set REDIS_URL')
else shown('limits of a call, in Redis', await limitCost({ redis: { url: REDIS_URL } }, REDIS_CALLS, CONCURRENCY), 'µs')
