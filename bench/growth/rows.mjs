/** What grows, or is switched on, and what a call may cost then. */
import { readFileSync } from 'node:fs'
import { furtherKey, furtherModel } from '../gateway-config.mjs'
import { newDataDirectory } from '../session.mjs'
import { Connection } from '../driver/connection.mjs'
import { runToEnd } from '../processes.mjs'
import { chatOf, pacedStream, SCENARIOS, wireBytes } from '../scenarios.mjs'
import { SEED_SCRIPT } from '../measure/tasks.mjs'
import { isPostgresInstalled, startPostgres } from './postgres.mjs'

const KEYS = 10_000
const MODELS = 500
const TASKS = 10_000
const STREAMS = 5_000
/** Without end as far as a run is concerned, and shorter than the silence in which the gateway sends comments. */
const STREAM_FRAMES = 40
const STREAM_PACE_MS = 14_000
const OPENED_AT_ONCE = 100
const OPEN_LIMIT_MS = 60_000
/** Not before a run is over. */
const FIRST_POLL_MS = 3_600_000
/** For each stream one towards the caller and one towards the upstream, and what a process has besides. */
const DESCRIPTORS = STREAMS * 2 + 1_000
const NO_LIMIT = { requestsPerMinute: 1e9, tokensPerMinute: 1e9, concurrency: 1e6 }
/** An open store would have the usage of both. */
const NOTHING_STORED = { usage: { store: false } }
const WITHIN_5_PERCENT = { ratio: 1.05 }

/** One after the other, again and again. */
function inTurn(calls) {
  let index = 0
  return () => calls[index++ % calls.length]
}

const callsOf = (count, bytesOf) => (target) => {
  const { chat: expectedBytes } = target.expected
  return inTurn(Array.from({ length: count }, (_, index) => ({ request: bytesOf(target, index), expectedBytes })))
}

async function storeWithTasks() {
  const data = newDataDirectory()
  const createdAtMs = Date.now()
  const environment = { DATA: data, CREATED_AT_MS: String(createdAtMs), FIRST_POLL_MS: String(FIRST_POLL_MS) }
  await runToEnd(SEED_SCRIPT, { ...environment, COUNT: String(TASKS) })
  return data
}

/** Opens streams and leaves them open; resolves, when the upstream has them all, with what ends them. */
async function openStreams(session, target) {
  const request = wireBytes(pacedStream(STREAM_FRAMES, STREAM_PACE_MS), target)
  const connections = []
  const failures = []
  const onDone = (status) => failures.push(`a stream ended with ${status}`)
  const onError = (error) => failures.push(error.message)
  const deadline = performance.now() + OPEN_LIMIT_MS
  for (let open = 0; open < STREAMS; { open } = { open: (await session.control('counters')).open.now }) {
    if (failures.length > 0 || performance.now() > deadline) throw new Error(`${open} streams open: ${failures[0]}`)
    const missing = Math.min(OPENED_AT_ONCE, STREAMS - connections.length)
    for (let count = 0; count < missing; count++) {
      const connection = new Connection(target.port)
      connection.send(request, { onDone, onError })
      connections.push(connection)
    }
  }
  return () => {
    if (failures.length > 0) session.voids.push(`open streams: ${failures.length} ended, ${failures[0]}`)
    for (const connection of connections) connection.close()
  }
}

const openFilesLimit = () =>
  Number(/Max open files\s+\d+\s+(\d+)/.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1])

/**
 * By name: `base` and `variant` are options of the gateways; `calls` gives what is sent to one, where it is not always the same call;
 * `before` resolves with what ends it; `missing` says why a row cannot run here. `writes`: work goes on after the last answer.
 */
export const ROWS = {
  same: { title: 'the same again', aim: {} },
  keys: {
    title: `keys 1 / ${KEYS}`,
    variant: { keys: KEYS },
    calls: {
      variant: callsOf(KEYS, (target, index) => wireBytes(SCENARIOS.chat.request, target, furtherKey(index))),
    },
    aim: WITHIN_5_PERCENT,
  },
  models: {
    title: `channels and models 1 / ${MODELS}`,
    variant: { models: MODELS },
    calls: { variant: callsOf(MODELS, (target, index) => wireBytes(chatOf(furtherModel(index)), target)) },
    aim: WITHIN_5_PERCENT,
  },
  tasks: {
    title: `tasks in flight 0 / ${TASKS}`,
    base: { tasks: true, sections: NOTHING_STORED },
    variant: { tasks: true, sections: NOTHING_STORED },
    prepare: async () => ({ data: await storeWithTasks() }),
    aim: WITHIN_5_PERCENT,
  },
  streams: {
    title: `open streams 0 / ${STREAMS}`,
    before: openStreams,
    missing: () =>
      openFilesLimit() < DESCRIPTORS ? `a process may open ${openFilesLimit()} files of ${DESCRIPTORS}` : undefined,
    aim: WITHIN_5_PERCENT,
  },
  limits: { title: 'limits on a key', variant: { limits: NO_LIMIT }, aim: { addsUs: 3 } },
  embedded: {
    title: 'usage stored, embedded',
    variant: { sections: { usage: { store: true } } },
    writes: true,
    aim: { addsUs: 8, memoryMb: 60 },
  },
  postgres: {
    title: 'usage stored, PostgreSQL',
    writes: true,
    missing: () => (isPostgresInstalled() ? undefined : 'PostgreSQL is not installed'),
    prepare: async (session) => {
      const postgres = await startPostgres()
      session.companions.push(postgres)
      const end = async () => {
        session.companions = session.companions.filter((one) => one !== postgres)
        await postgres.stop()
      }
      return { sections: { database: { url: postgres.url } }, end }
    },
    aim: { addsUs: 4, memoryMb: 60 },
  },
}
