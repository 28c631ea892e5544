import { flatnessOf } from './flatness.js'
import type { MixedOptions, MixedOutcome } from './mixed-run.js'

const WORDS = {
  residentMiB: 'resident memory, MiB',
  heapMiB: 'heap in use, MiB',
  sockets: 'open sockets',
  files: 'open files, sockets included',
  timers: 'timers',
  resources: 'whatever keeps the process busy',
} as const

const shown = (value: number): string => value.toFixed(Math.abs(value) < 100 && !Number.isInteger(value) ? 1 : 0)
const row = (cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |`

/** A run as Markdown. */
export function describeMixed({ runMs, sampleMs, workers, seed }: MixedOptions, outcome: MixedOutcome): string {
  const { counts, samples, atRest, leftUpstream, faults } = outcome
  const minutes = shown(runMs / 60_000)
  return [
    `${minutes} minutes, ${workers} callers at once, seed ${seed}; a look each ${sampleMs / 1000} s, ${samples.length} of them.`,
    '',
    row(['What callers did', 'answered', 'refused', 'failed', 'left']),
    row(['---', '---:', '---:', '---:', '---:']),
    ...Object.entries(counts).map(([kind, { answered, refused, failed, left }]) =>
      row([kind, answered, refused, failed, left]),
    ),
    '',
    row(['What the gateway held', 'after warming up', 'middle', 'most', 'last', 'at rest', 'growth', 'allowed', '']),
    row(['---', '---:', '---:', '---:', '---:', '---:', '---:', '---:', '---']),
    ...flatnessOf(samples).map(({ figure, first, median, most, last, growth, bound, isFlat }) =>
      row([
        WORDS[figure],
        ...[first, median, most, last, atRest[figure], growth, bound].map(shown),
        isFlat ? 'flat' : 'GROWS',
      ]),
    ),
    '',
    `Left upstream at rest: ${leftUpstream} requests. Faults in the log: ${faults.length}.`,
  ].join('\n')
}
