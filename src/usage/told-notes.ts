import { isOwnBearer, ownerOf } from '../core/owner.js'
import type { EndedTask, UsageEntry } from '../core/usage-recorder.js'
import type { PriceTable } from './price-table.js'
import type { UsageNote } from './usage-note.js'

/** What an ended task leaves to be recorded: one video or image, or none of a task that has failed. */
export function taskNote(task: EndedTask, prices: PriceTable): UsageNote {
  const { id, ownerId, taskClass, route, model, channelId, hasSucceeded, reported, durationMs } = task
  const made = hasSucceeded ? 1 : 0
  return {
    id: `task ${id}`,
    atMs: Date.now(),
    requestId: undefined,
    keyId: isOwnBearer(ownerId) ? 'caller' : ownerId,
    ownerId,
    kind: 'task',
    route,
    model,
    usageClass: taskClass,
    channelId,
    outcome: hasSucceeded ? 'ok' : 'upstream_failed',
    durationMs,
    usage: {
      units: { ...reported, ...(taskClass === 'video' ? { videos: made } : { images: made }) },
      estimated: false,
    },
    unitsText: undefined,
    estimate: undefined,
    prices,
  }
}

/** What one answer, or one transcription, within a call leaves to be recorded. */
export function entryNote(
  { call, channelId, model, kind, units, estimated, estimate, outcome = 'ok' }: UsageEntry,
  prices: PriceTable,
): UsageNote {
  const { requestId, caller, path, log } = call
  return {
    id: undefined,
    atMs: Date.now(),
    requestId,
    keyId: caller.keyId,
    ownerId: ownerOf(caller),
    kind,
    route: path,
    model,
    usageClass: log.modelClass ?? 'realtime',
    channelId,
    outcome,
    durationMs: undefined,
    usage: { units, estimated },
    unitsText: undefined,
    estimate,
    prices,
  }
}
