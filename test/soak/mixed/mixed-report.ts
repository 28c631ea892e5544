import { flatnessOf } from './flatness.js'
import { ENDINGS } from './http-caller.js'
import type { MetricsWatch } from './metrics-watch.js'
import type { MixedOutcome } from './mixed-run.js'
import type { MixedOptions } from './mixed-upstreams.js'
import type { Holdings } from './process-samples.js'
import { SOCKET_GROUPS } from './socket-counts.js'
import type { UsageCounts } from './usage-counts.js'

const WORDS = {
  residentMiB: 'resident memory, MiB',
  heapMiB: 'heap in use, MiB',
  sockets: 'open sockets',
  files: 'open files, sockets included',
  timers: 'timers',
  resources: 'whatever keeps the process busy',
} as const

const SOCKET_WORDS = {
  listening: 'sockets that listen',
  callers: 'to callers',
  scrapes: 'to the scraper',
  upstreams: 'to upstreams',
  store: 'to the store',
  redis: 'to Redis',
  collector: 'to the collector of traces',
  others: 'to anybody else',
  own: 'to its own processes and streams',
  unknown: 'to nobody',
} as const

const shown = (value: number): string => value.toFixed(Math.abs(value) < 100 && !Number.isInteger(value) ? 1 : 0)
const row = (cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |`
const table = (heads: readonly string[], rows: readonly (readonly (string | number)[])[]): string =>
  [row(heads), row(heads.map((_, at) => (at === 0 ? '---' : '---:'))), ...rows.map(row)].join('\n')

/** A run as Markdown. */
export function describeMixed(options: MixedOptions, outcome: MixedOutcome): string {
  const { runMs, sampleMs, workers, seed, surroundings } = options
  const { samples, leftUpstream, faults } = outcome
  const minutes = shown(runMs / 60_000)
  return [
    `${minutes} minutes, ${workers} callers at once, seed ${seed}; a look each ${sampleMs / 1000} s, ${samples.length} of them.`,
    `${surroundings?.description ?? 'Records and tasks in the embedded store; limits counted in the memory of the process'}.`,
    '',
    callsTable(outcome),
    '',
    figuresTable(outcome),
    '',
    holdingsTable(outcome),
    '',
    ...(outcome.metrics === undefined ? [] : [...metricsLines(outcome.metrics), '']),
    ...(outcome.usage === undefined ? [] : [usageLine(outcome.usage)]),
    `Left upstream at rest: ${leftUpstream} requests. Faults: ${faults.length}.`,
    ...faults.map((fault) => `- ${fault}`),
  ].join('\n')
}

const callsTable = ({ counts }: MixedOutcome): string =>
  table(
    ['What callers did', ...ENDINGS],
    Object.entries(counts).map(([kind, endings]) => [kind, ...ENDINGS.map((ending) => endings[ending])]),
  )

const figuresTable = ({ samples, atRest }: MixedOutcome): string =>
  table(
    ['What the gateway held', 'after warming up', 'middle', 'most', 'last', 'at rest', 'growth', 'allowed', ''],
    flatnessOf(samples).map(({ figure, first, median, most, last, growth, bound, isFlat }) => [
      WORDS[figure],
      ...[first, median, most, last, atRest[figure], growth, bound].map(shown),
      isFlat ? 'flat' : 'GROWS',
    ]),
  )

const holdingsTable = ({ before, resting, after }: MixedOutcome): string => {
  const cells = (of: (holdings: Holdings) => number): number[] => [before, resting, after].map(of)
  return table(
    ['What it held for later', 'before the first call', 'at rest', 'and without upstreams'],
    [
      ...SOCKET_GROUPS.map((group) => [SOCKET_WORDS[group], ...cells(({ sockets }) => sockets[group])]),
      ['timers', ...cells(({ timers }) => timers)],
    ],
  )
}

function metricsLines(metrics: MetricsWatch): readonly string[] {
  const told = (name: string, label: string): string => {
    const values = metrics.valuesOf(name, label).map(([word, value]) => `${word} ${value}`)
    return values.length === 0 ? 'none' : values.join(', ')
  }
  return [
    `Scrapes: ${metrics.scrapes}; Redis was away at ${metrics.redisAway} of them.`,
    `Reloads: ${told('gateway_config_reloads_total', 'outcome')}.`,
    `Refused by limits: ${told('gateway_limit_refusals_total', 'limit')}.`,
    `Spans of traces: ${told('gateway_trace_spans_total', 'outcome')}.`,
  ]
}

const usageLine = ({ counted, stored, endedTasks, storedTasks }: UsageCounts): string =>
  `Records of use: of calls and answers ${counted}, stored ${stored}; of ended tasks ${endedTasks}, stored ${storedTasks}.`
