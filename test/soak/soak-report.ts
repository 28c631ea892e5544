import { distinct, isEnd } from './soak-records.js'
import type { SoakOptions, SoakOutcome } from './soak-run.js'

const count = (value: number): string => value.toLocaleString('en-US')
const seconds = (ms: number): string => `${Math.round(ms / 1000)} s`

/** One run in a few lines. */
export function describeRun(what: string, { calmMs, workers }: SoakOptions, outcome: SoakOutcome): string {
  const { violations, records, figures } = outcome
  const { attempts, upstream, callbacks, audited, store: rows, sightings } = records
  const told = (wanted: string): number => attempts.filter(({ outcome: learnt }) => learnt === wanted).length
  const acknowledged = new Set(attempts.map(({ taskId }) => taskId))
  const recovered = upstream.filter(({ taskId }) => !acknowledged.has(taskId)).length
  const failedCallbacks = callbacks.filter(({ answer }) => answer !== 'taken').length
  const events = distinct(callbacks.map(({ webhookId }) => webhookId)).length
  const memory = (figures.memory[0] ?? []).map((_, process) => figures.memory.map((look) => look[process]).join(', '))
  return [
    `soak ${what}: ${seconds(figures.chaosMs)} with ${figures.kills} kills and ${seconds(calmMs)} without, ${workers} workers`,
    `${count(attempts.length)} creates sent: ${count(told('acknowledged'))} acknowledged, ${count(told('refused'))} refused, ${count(told('unclear'))} without an answer`,
    `${count(upstream.length)} tasks made upstream, ${count(recovered)} of them found after a lost answer, ${records.upstreamDuplicates.length} asked for twice`,
    `${count(figures.reads)} reads and ${count(figures.lists)} lists with ${count(sightings.length)} sightings; ${count(audited.length)} tasks listed, ${count(audited.filter(({ status }) => isEnd(status)).length)} of them ended`,
    `${count(events)} events in ${count(callbacks.length)} callbacks, ${count(failedCallbacks)} of them failed; ${count(rows.exhaustedEvents)} events given up`,
    `settled in ${seconds(figures.settleMs)}; ${count(figures.logCharacters)} characters of logs; MiB of memory without kills: ${memory.join(' and ') || 'not told'}`,
    `${violations.length} violations`,
  ].join('\n  ')
}
