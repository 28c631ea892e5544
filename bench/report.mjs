import { PEERS } from './yardsticks/peers.mjs'

const pad = (cells, widths) =>
  cells.map((cell, index) => (index === 0 ? cell.padEnd(widths[index]) : cell.padStart(widths[index]))).join('  ')

function table(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)))
  const lines = rows.map((row) => `  ${pad(row, widths)}`)
  lines.splice(1, 0, `  ${widths.map((width) => '-'.repeat(width)).join('  ')}`)
  return lines.join('\n')
}

const fixed = (value, digits) => (value === undefined ? '' : value.toFixed(digits))
const megabytes = (bytes) => fixed(bytes / 1_000_000, 1)
const percent = (share) => `${Math.round(share * 100)} %`
const metMark = (met) => (met === undefined ? '' : met ? 'ok' : 'MISSED')

function cpuTable(cpu) {
  const head = ['', 'gateway µs', 'bare µs', 'each', 'RATIO', 'lowest', 'highest', 'target', '', 'driver', 'upstream']
  const rows = Object.values(cpu).map((one) => [
    one.title,
    fixed(one.gatewayUs, 0),
    fixed(one.yardstickUs, 0),
    one.per ? `${fixed(one.gatewayUsPer, 2)} / ${fixed(one.yardstickUsPer, 2)} µs per ${one.per}` : '',
    ...comparisonCells(one),
    percent(one.driverShare),
    percent(one.upstreamShare),
  ])
  return table([head, ...rows])
}

const comparisonCells = ({ ratio, lowestRatio, highestRatio, target, met }) => [
  fixed(ratio, 2),
  fixed(lowestRatio, 2),
  fixed(highestRatio, 2),
  target === undefined ? '' : `<= ${fixed(target, 2)}`,
  metMark(met),
]

function peersTable(cpu) {
  const head = ['', 'peer', 'gateway µs', 'peer µs', 'RATIO', 'lowest', 'highest', 'target', '', 'peer failed']
  const rows = Object.values(cpu).flatMap(({ title, gatewayUs, peers }) =>
    Object.entries(peers).map(([role, one]) => [
      title,
      PEERS[role].title,
      fixed(gatewayUs, 0),
      fixed(one.us, 0),
      ...comparisonCells(one),
      String(one.failed),
    ]),
  )
  return table([head, ...rows])
}

/** What the compiler was still at work on; the warm-up of a quick run is too short for most. */
function unsettledText({ cpu, translated, mode }) {
  const names = [...Object.values(cpu), ...translated].flatMap(({ title, settled }) =>
    Object.entries(settled).flatMap(([role, isSettled]) => (isSettled ? [] : [`${title} (${role})`])),
  )
  return mode === 'quick' || names.length === 0 ? [] : [`Not settled when measured: ${names.join('; ')}.`]
}

function startTable({ streams, gateway, yardstick }) {
  const head = ['', 'first answer ms', 'resident MB', `first ${streams} streams, µs each`, 'AGAINST SETTLED']
  const row = (title, one) => [
    title,
    fixed(one.firstAnswerMs, 0),
    megabytes(one.residentBytes),
    fixed(one.firstStreamsUs, 0),
    fixed(one.againstSettled, 1),
  ]
  return table([head, row('gateway', gateway), row('yardstick', yardstick)])
}

function translatedTable(rows) {
  const head = ['', 'translated µs', 'relayed µs', 'adds µs', 'lowest', 'highest', 'RATIO', 'target', '']
  return table([
    head,
    ...rows.map((one) => [
      one.title,
      fixed(one.translatedUs, 0),
      fixed(one.relayedUs, 0),
      `${fixed(one.addsUs, 1)} per ${one.per}`,
      fixed(one.lowestUs, 1),
      fixed(one.highestUs, 1),
      fixed(one.ratio, 2),
      `<= ${fixed(one.target, 2)}`,
      metMark(one.met),
    ]),
  ])
}

function latencyTable({ chat, stream }) {
  const head = ['ms', 'direct', 'yardstick', 'gateway', 'yardstick adds', 'GATEWAY ADDS', 'over yardstick']
  const named = {
    [`chat answer, ${chat.ratePerSecond}/s`]: chat.answer,
    [`first byte of a stream, ${stream.ratePerSecond}/s`]: stream.firstByte,
    [`age of a frame, one per ${stream.paceMs} ms`]: stream.frameAge,
  }
  const rows = Object.entries(named).flatMap(([title, figure]) =>
    Object.entries(figure).map(([level, one]) => [
      `${title}, ${level}`,
      ...[
        one.directMs,
        one.yardstickMs,
        one.gatewayMs,
        one.yardstickAddsMs,
        one.gatewayAddsMs,
        one.overYardstickMs,
      ].map((value) => fixed(value, 2)),
    ]),
  )
  return table([head, ...rows])
}

function memoryTable(memory) {
  const { speechBytes, slowBytesPerSecond, openStreams } = memory.plan
  const size = `${Math.round(speechBytes / 1_000_000)} MB of speech`
  const titles = {
    openStreams: `${openStreams.streams} open streams`,
    speechSlow: `${size}, read at ${Math.round(slowBytesPerSecond / 1_000_000)} MB/s`,
    speechFast: `${size}, read at once`,
    upload: 'upload of 25 MB',
  }
  const head = ['RSS, MB', 'gateway before', 'highest', 'GROWTH', 'yardstick before', 'highest', 'GROWTH']
  const cells = (one) => [megabytes(one.beforeBytes), megabytes(one.peakBytes), megabytes(one.growthBytes)]
  const rows = Object.entries(titles)
    .filter(([name]) => memory[name])
    .map(([name, title]) => [title, ...cells(memory[name].gateway), ...cells(memory[name].yardstick)])
  return table([head, ...rows])
}

function realtimeTable({ paths }) {
  const head = [
    '',
    'µs per frame',
    'RATIO',
    'lowest',
    'highest',
    'target',
    '',
    'frames',
    'LOST',
    'DISORDERED',
    'driver',
  ]
  const rows = Object.values(paths).map((one) => [
    one.title,
    fixed(one.usPerFrame, 1),
    fixed(one.ratio, 2),
    fixed(one.lowestRatio, 2),
    fixed(one.highestRatio, 2),
    one.target === undefined ? '' : `<= ${fixed(one.target, 1)}`,
    metMark(one.met),
    ...[one.frames, one.lost, one.outOfOrder + one.changed].map(String),
    percent(one.driverShare),
  ])
  return table([head, ...rows])
}

function realtimeMemoryTable({ paths, memory }) {
  const head = ['RSS, MB', 'without sessions', 'at the start', 'at the end', 'GROWTH', 'highest']
  const rows = Object.entries(memory).map(([name, one]) => [
    paths[name].title,
    ...[one.idleBytes, one.startBytes, one.endBytes, one.growthBytes, one.peakBytes].map(megabytes),
  ])
  return table([head, ...rows])
}

function realtimeText(realtime) {
  const { sessions, framesPerSecond, slotMs, memoryMs } = realtime.plan
  return [
    `\nRealtime: ${sessions} sessions, each ${framesPerSecond} frames a second each way, CPU per forwarded frame (slots of ${fixed(slotMs / 1000, 1)} s)`,
    realtimeTable(realtime),
    `\nRealtime memory, ${fixed(memoryMs / 1000, 1)} s of the same`,
    realtimeMemoryTable(realtime),
  ].join('\n')
}

function operationsTable({ create, read }) {
  const head = ['', 'gateway µs', 'yardstick µs', 'RATIO', 'lowest', 'highest', 'a second', 'at', 'p50 ms', 'p99 ms']
  const rows = [create, read].map((one) => [
    one.title,
    fixed(one.gatewayUs, 0),
    fixed(one.yardstickUs, 0),
    fixed(one.ratio, 1),
    fixed(one.lowestRatio, 1),
    fixed(one.highestRatio, 1),
    fixed(one.perSecond, 0),
    `${one.ratePerSecond}/s`,
    fixed(one.gatewayMs.p50, 1),
    fixed(one.gatewayMs.p99, 1),
  ])
  return table([head, ...rows])
}

function crowdText({ inFlight, polls, chat }) {
  const head = [`chat answer, ${chat.ratePerSecond}/s`, 'p50 ms', 'p99 ms', 'polls a second']
  const row = (title, { p50, p99, pollsPerSecond }) => [title, fixed(p50, 2), fixed(p99, 2), fixed(pollsPerSecond, 0)]
  return [
    `\nPolls with ${inFlight} tasks in flight: ${fixed(polls.us, 0)} µs each, ${fixed(polls.perSecond, 0)} a second, ${percent(polls.coreShare)} of a core`,
    table([head, row('without tasks', chat.without), row(`with ${inFlight} in flight`, chat.during)]),
  ].join('\n')
}

function tasksText(tasks) {
  return [
    `\nVideo tasks, embedded store (one write that is on this disk: ${fixed(tasks.fsyncMs, 2)} ms); the yardstick keeps nothing`,
    operationsTable(tasks),
    ...(tasks.crowd === undefined ? [] : [crowdText(tasks.crowd)]),
  ].join('\n')
}

/** The rows of peers, each named with its peer. */
const peerRows = (cpu) =>
  Object.values(cpu).flatMap(({ title, peers }) =>
    Object.entries(peers).map(([role, one]) => ({ ...one, title: `${title}, against ${PEERS[role].title}` })),
  )

/** The whole run as text for a terminal. */
export function report(results) {
  const { cpu, start, translated, latency, memory, realtime, tasks, machine, voids, changedAnswers } = results
  const missed = [...Object.values(cpu), ...peerRows(cpu), ...translated, ...Object.values(realtime.paths)].filter(
    (one) => one.met === false,
  )
  return [
    `${machine.cpu} x ${machine.cores}, Node ${machine.node}, load ${machine.loadBefore} before, ${results.mode} run, ${fixed(results.tookSeconds, 0)} s`,
    ...(results.selfTest
      ? [
          'SELF TEST: the yardstick runs in the place of the gateway; ratios must be about 1, those of translated calls about 0.',
        ]
      : []),
    `\nCPU per request (whole process, medians of ${cpu.chat.rounds.length} rounds of slots)\n${cpuTable(cpu)}`,
    `\nThe same against proxies of others\n${peersTable(cpu)}`,
    ...results.notRun.map((title) => `NOT RUN: ${title} is not installed.`),
    ...unsettledText(results),
    `\nA fresh process\n${startTable(start)}`,
    `\nTranslated calls beside relayed ones to the same upstream; the ratio is what they add to a call or a chunk of the yardstick\n${translatedTable(translated)}`,
    `\nLatency, open loop, counted from when a request was due\n${latencyTable(latency)}`,
    `\nMemory\n${memoryTable(memory)}`,
    realtimeText(realtime),
    tasksText(tasks),
    `\nDriver: at most ${percent(results.driverShare)} of a core (void above 80 %). Others had ${percent(results.othersShare)} of the machine (void above 10 %). Answers were counted at both ends.`,
    changedAnswers.length === 0
      ? 'Every answer had the bytes of the upstream.'
      : `Answers with other bytes than the upstream's: ${changedAnswers.join('; ')}.`,
    ...(missed.length === 0
      ? ['All targets met.']
      : missed.map((one) => `MISSED: ${one.title}: ${fixed(one.ratio, 2)}, target ${fixed(one.target, 2)}`)),
    ...voids.map((reason) => `VOID: ${reason}`),
  ].join('\n')
}
