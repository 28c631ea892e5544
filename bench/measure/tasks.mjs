import { closeSync, cpSync, fsyncSync, mkdtempSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as wait } from 'node:timers/promises'
import { closedLoop } from '../driver/closed-loop.mjs'
import { exchangeOnce } from '../driver/connection.mjs'
import { openLoop } from '../driver/open-loop.mjs'
import { runToEnd, scratchDirectory } from '../processes.mjs'
import { SCENARIOS, wireBytes } from '../scenarios.mjs'
import { newDataDirectory } from '../session.mjs'
import { median, quantile } from '../statistics.mjs'
import { CALLERS_VIDEO_PATH, createBody } from '../tasks-wire.mjs'

export const SEED_SCRIPT = fileURLToPath(new URL('../seed-tasks.mjs', import.meta.url))

const CREATE_CALLERS = 16
const READ_CALLERS = 32
/** The yardstick is so much faster that a shorter slot is enough. */
const YARDSTICK_SHARE = 0.4
const FSYNC_ROUNDS = 30

/** Of a task that has ended at once: nothing is polled while creates and reads are measured. */
const CREATE = { path: CALLERS_VIDEO_PATH, contentType: 'application/json', body: createBody({ ended: true }) }
const readOf = (id) => ({ path: `${CALLERS_VIDEO_PATH}/${id}` })

const quantiles = (values) => ({ p50: quantile(values, 0.5), p99: quantile(values, 0.99) })

/** What a create cannot be faster than: one small write that is on the disk, in milliseconds. */
function fsyncMs() {
  const file = openSync(join(mkdtempSync(join(scratchDirectory(), 'fsync-')), 'file'), 'w')
  const times = Array.from({ length: FSYNC_ROUNDS }, () => {
    const start = performance.now()
    writeSync(file, Buffer.alloc(8192))
    fsyncSync(file)
    return performance.now() - start
  })
  closeSync(file)
  return median(times)
}

async function ask(target, request) {
  const { status, body, bodyBytes } = await exchangeOnce(target.port, wireBytes(request, target))
  const { code, data } = JSON.parse(body.toString())
  if (status !== 200 || code !== 0) throw new Error(`${target.name}: ${request.path} answered ${status} ${body}`)
  return { data, bodyBytes }
}

/** One create of each kind and one read, checked; returns the requests of the slots and the lengths of their responses. */
async function probe(target) {
  const ended = await ask(target, CREATE)
  const read = await ask(target, readOf(ended.data.task_id))
  if (read.data.task_status !== 'succeed' || read.data.task_result.videos.length !== 1) {
    throw new Error(`${target.name}: a task reads ${JSON.stringify(read.data)}`)
  }
  return {
    create: { request: CREATE, expectedBytes: ended.bodyBytes },
    read: { request: readOf(ended.data.task_id), expectedBytes: read.bodyBytes },
  }
}

/** What is driven, which counter of the upstream it moves, and whether the gateway answers it from its store alone. */
const OPERATIONS = {
  create: { title: 'create', counter: 'videoCreate', concurrency: CREATE_CALLERS, isStored: false },
  read: { title: 'read of an ended task', counter: 'videoRead', concurrency: READ_CALLERS, isStored: true },
}

const loadOf = (target, { request, expectedBytes }) => ({
  port: target.port,
  request: wireBytes(request, target),
  expectedBytes,
})

/** CPU in alternating closed-loop slots, then latency at a fixed rate. */
async function measureOperation(session, targets, name, { pairs: count, slotMs, warmUpMs, latencyMs, ratePerSecond }) {
  const { title, counter, concurrency, isStored } = OPERATIONS[name]
  const slot = (role, run) =>
    session.slot(targets[role].target, counter, run, { isStored: isStored && role === 'gateway' && !session.selfTest })
  const busy = (role, gatewayMs) => {
    const durationMs = role === 'gateway' ? gatewayMs : gatewayMs * YARDSTICK_SHARE
    return slot(role, () =>
      closedLoop({ ...loadOf(targets[role].target, targets[role].probed[name]), concurrency, durationMs }),
    )
  }
  const pairs = []
  for (const role of ['gateway', 'yardstick']) await busy(role, warmUpMs)
  for (let index = 0; index < count; index++) {
    const slots = {}
    for (const role of index % 2 === 0 ? ['gateway', 'yardstick'] : ['yardstick', 'gateway']) {
      slots[role] = await busy(role, slotMs)
    }
    const us = (role) => slots[role].targetUs / slots[role].completed
    const perSecond = (slots.gateway.completed * 1000) / slots.gateway.wallMs
    pairs.push({ gatewayUs: us('gateway'), yardstickUs: us('yardstick'), perSecond, slots })
  }
  const steady = {}
  for (const role of ['gateway', 'yardstick']) {
    const load = { ...loadOf(targets[role].target, targets[role].probed[name]), ratePerSecond, durationMs: latencyMs }
    steady[role] = quantiles((await slot(role, () => openLoop(load))).totalMs)
  }
  return summary(title, ratePerSecond, pairs, steady)
}

function summary(title, ratePerSecond, pairs, steady) {
  const ratios = pairs.map((one) => one.gatewayUs / one.yardstickUs)
  return {
    title,
    gatewayUs: median(pairs.map((one) => one.gatewayUs)),
    yardstickUs: median(pairs.map((one) => one.yardstickUs)),
    ratio: median(ratios),
    lowestRatio: Math.min(...ratios),
    highestRatio: Math.max(...ratios),
    perSecond: median(pairs.map((one) => one.perSecond)),
    ratePerSecond,
    gatewayMs: steady.gateway,
    yardstickMs: steady.yardstick,
  }
}

const readsSoFar = async (session) => (await session.control('counters')).counters.videoRead.requests

/** Chat at a fixed rate, as in the step `latency`; says how many polls went on beside it. */
async function chatRound(session, target, { ratePerSecond, durationMs }) {
  const load = {
    port: target.port,
    request: wireBytes(SCENARIOS.chat.request, target),
    expectedBytes: session.gateway.expected.chat,
    ratePerSecond,
    durationMs,
  }
  const before = await readsSoFar(session)
  const result = await session.slot(target, 'chat', () => openLoop(load))
  const polls = (await readsSoFar(session)) - before
  return { ...quantiles(result.totalMs), pollsPerSecond: (polls * 1000) / result.wallMs }
}

async function chatRounds(session, target, plan) {
  const rounds = []
  for (let index = 0; index < plan.rounds; index++) rounds.push(await chatRound(session, target, plan))
  return rounds
}

const over = (rounds) => ({
  p50: median(rounds.map(({ p50 }) => p50)),
  p99: median(rounds.map(({ p99 }) => p99)),
  pollsPerSecond: median(rounds.map(({ pollsPerSecond }) => pollsPerSecond)),
  rounds,
})

const seed = (data, count, createdAtMs) =>
  runToEnd(SEED_SCRIPT, { DATA: data, COUNT: String(count), CREATED_AT_MS: String(createdAtMs) })

/** A gateway that comes up with a store full of tasks under way; `data` holds an empty store. */
async function startCrowded(session, data, count) {
  const createdAtMs = Date.now()
  await session.control(`adopt-tasks?${count},${createdAtMs}`)
  await seed(data, count, createdAtMs)
  return session.startGateway({ tasks: true, data })
}

/** What polls cost while nothing else goes on. */
async function pollsAlone(session, target, durationMs) {
  const before = { reads: await readsSoFar(session), us: target.service.cpuMicroseconds(), atMs: performance.now() }
  await wait(durationMs)
  const polls = (await readsSoFar(session)) - before.reads
  const us = target.service.cpuMicroseconds() - before.us
  const seconds = (performance.now() - before.atMs) / 1000
  if (polls === 0) session.voids.push('tasks: nothing was polled')
  return { perSecond: polls / seconds, us: us / polls, coreShare: us / (seconds * 1_000_000) }
}

/** Chat without tasks before, with many under way, and without again; the process without them is `idle` meanwhile. */
async function measureCrowd(session, idle, data, { inFlight, warmUpMs, pollMs, chat }) {
  await chatRound(session, idle, { ...chat, durationMs: warmUpMs })
  const before = await chatRounds(session, idle, chat)
  const crowded = await startCrowded(session, data, inFlight)
  await chatRound(session, crowded, { ...chat, durationMs: warmUpMs })
  const polls = await pollsAlone(session, crowded, pollMs)
  const during = await chatRounds(session, crowded, chat)
  if (during.some(({ pollsPerSecond }) => pollsPerSecond === 0)) session.voids.push('tasks: no polls beside the chat')
  await crowded.service.stop()
  const after = await chatRounds(session, idle, chat)
  const { ratePerSecond } = chat
  return { inFlight, polls, chat: { ratePerSecond, without: over([...before, ...after]), during: over(during) } }
}

/** What tasks cost, and what many of them do to other traffic, which a self-test leaves out: its "gateway" keeps none. */
export async function measureTasks(session, { tasks: plan }) {
  const [empty, crowded] = [newDataDirectory(), newDataDirectory()]
  // Making a store takes seconds of CPU: once is enough.
  if (!session.selfTest) await seed(empty, 0, 0)
  cpSync(empty, crowded, { recursive: true })
  const gateway = await session.startGateway({ tasks: true, data: empty })
  const { yardstick } = session
  const targets = {
    gateway: { target: gateway, probed: await probe(gateway) },
    yardstick: { target: yardstick, probed: await probe(yardstick) },
  }
  const create = await measureOperation(session, targets, 'create', plan.create)
  const read = await measureOperation(session, targets, 'read', plan.read)
  const crowd = session.selfTest ? undefined : await measureCrowd(session, gateway, crowded, plan.crowd)
  await gateway.service.stop()
  return { plan, fsyncMs: fsyncMs(), create, read, crowd }
}
