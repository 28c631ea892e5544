import { Injectable } from '@nestjs/common'
import { ownerOf } from '../core/owner.js'
import type { Call } from '../core/request-context.js'
import { UsageRecorder } from '../core/usage-recorder.js'
import type { UpstreamImageTask } from '../providers/image.contract.js'

/** Tasks are read many times after their end; beyond this the store tells those apart that were counted. */
const REMEMBERED = 10_000

/** Counts image tasks when they are first seen ended: they are made elsewhere, so that nothing else tells of them. */
@Injectable()
export class EndedImages {
  private readonly seen = new Set<string>()

  constructor(private readonly recorder: UsageRecorder) {}

  note(id: string, channelId: string, { status, isTerminal }: UpstreamImageTask, { caller, path }: Call): void {
    const key = `image ${channelId} ${id}`
    if (!isTerminal || this.seen.has(key)) return
    if (this.seen.size >= REMEMBERED) this.seen.clear()
    this.seen.add(key)
    this.recorder.taskEnded({
      id: key,
      ownerId: ownerOf(caller),
      taskClass: 'image',
      route: path.replace(id, ':id'),
      model: 'images',
      channelId,
      hasSucceeded: status === 'SUCCESS',
      reported: {},
      durationMs: undefined,
    })
  }
}
