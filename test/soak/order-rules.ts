import { distinct, grouped, isEnd, type Sighting, type SoakRecords, type TaskStatus } from './soak-records.js'

const RANKS = { submitted: 0, processing: 1, succeed: 2, failed: 2 } as const satisfies Readonly<
  Record<TaskStatus, number>
>

/** States only move forward, for readers and for receivers, and an end is one and the same for everybody. */
export function orderFaults({ sightings, callbacks }: SoakRecords): readonly string[] {
  const ends = [...sightings, ...callbacks].filter(({ status }) => isEnd(status))
  return [
    ...[...grouped(sightings, ({ taskId }) => taskId)].flatMap(([taskId, seen]) => regressions(taskId, seen)),
    ...[...grouped(callbacks, ({ taskId }) => taskId)].flatMap(([taskId, told]) =>
      [...told]
        .sort((one, other) => one.updatedAt - other.updatedAt)
        .flatMap(({ status }, index, sorted) => {
          const before = sorted[index - 1]
          return before !== undefined && RANKS[status] < RANKS[before.status]
            ? [`task ${taskId} is told as ${status} after ${before.status}, by its own time`]
            : []
        }),
    ),
    ...[...grouped(ends, ({ taskId }) => taskId)].flatMap(([taskId, shown]) =>
      distinct(shown.map(({ digest }) => digest)).length === 1
        ? []
        : [`task ${taskId} has several ends: ${distinct(shown.map(({ status }) => status)).join(', ')}`],
    ),
  ]
}

/** A sighting that began when another one was over must not lie behind it. Those at the same time may go either way. */
function regressions(taskId: string, seen: readonly Sighting[]): readonly string[] {
  const byStart = [...seen].sort((one, other) => one.startedAtMs - other.startedAtMs)
  const byEnd = [...seen].sort((one, other) => one.endedAtMs - other.endedAtMs)
  const faults: string[] = []
  let farthest: TaskStatus | undefined
  let over = 0
  for (const { status, startedAtMs } of byStart) {
    for (let next = byEnd[over]; next !== undefined && next.endedAtMs < startedAtMs; next = byEnd[++over]) {
      if (farthest === undefined || RANKS[next.status] > RANKS[farthest]) farthest = next.status
    }
    if (farthest !== undefined && RANKS[status] < RANKS[farthest]) {
      faults.push(`task ${taskId} is shown as ${status} after ${farthest}`)
    }
  }
  return faults
}
