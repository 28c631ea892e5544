import { Injectable } from '@nestjs/common'
import { type Caller, ownerOf } from '../core/caller.js'
import { GatewayError } from '../core/errors.js'
import type { RequestContext } from '../core/request-context.js'
import { UsageRecorder } from '../core/usage-record.js'
import type { AttemptContext, ImageProvider, UpstreamImageTask } from '../providers/contract.js'
import { type PinnedRoute, ProviderRouter } from '../routing/router.js'
import { IMAGE_FETCH } from './image.endpoints.js'

/** Tasks are read many times after their end; beyond this the store tells those apart that were counted. */
const REMEMBERED = 10_000

/** Counts image tasks when they are first seen ended: they are made elsewhere, so that nothing else tells of them. */
@Injectable()
export class EndedImages {
  private readonly seen = new Set<string>()

  constructor(private readonly recorder: UsageRecorder) {}

  record(
    id: string,
    channelId: string,
    { status, isTerminal }: UpstreamImageTask,
    { caller, path }: RequestContext,
  ): void {
    const key = `image ${channelId} ${id}`
    if (!isTerminal || this.seen.has(key)) return
    if (this.seen.size >= REMEMBERED) this.seen.clear()
    this.seen.add(key)
    const hasSucceeded = status === 'SUCCESS'
    this.recorder.taskEnded({
      id: key,
      ownerId: ownerOf(caller),
      usageClass: IMAGE_FETCH.billing.usageClass,
      route: path.replace(id, ':id'),
      model: IMAGE_FETCH.billing.model,
      channelId,
      outcome: hasSucceeded ? 'ok' : 'upstream_failed',
      usage: { units: { images: hasSucceeded ? 1 : 0 }, estimated: false },
      durationMs: undefined,
    })
  }
}

const REMEMBERED_TASKS = 10_000

/** Which channel knew a task at its last read. Only a hint where to ask first: it grants no permission. */
@Injectable()
export class KnownChannels {
  /** In order of use: the first was not asked for the longest. */
  private readonly channelIds = new Map<string, string>()

  find(taskId: string): string | undefined {
    return this.channelIds.get(taskId)
  }

  remember(taskId: string, channelId: string): void {
    this.channelIds.delete(taskId)
    this.channelIds.set(taskId, channelId)
    if (this.channelIds.size <= REMEMBERED_TASKS) return
    const [oldest] = this.channelIds.keys()
    if (oldest !== undefined) this.channelIds.delete(oldest)
  }
}

export const unknownTask = (): GatewayError => new GatewayError('not_found', 'There is no such task.')

type TaskRequest = (provider: ImageProvider, context: AttemptContext) => Promise<UpstreamImageTask | undefined>

/** Finds the channel on which a task lives. */
@Injectable()
export class ImageChannels {
  constructor(
    private readonly router: ProviderRouter,
    private readonly known: KnownChannels,
    private readonly ended: EndedImages,
  ) {}

  /**
   * Asks one channel after the other until one knows the task, beginning with the one that knew it before. Rejects with
   * `not_found` when all say that they do not, otherwise with the first failure: the channel that could not be asked may
   * be the one that knows it.
   */
  async ask(id: string, call: RequestContext, question: TaskRequest): Promise<UpstreamImageTask> {
    let failure: { readonly error: unknown } | undefined
    for (const route of this.routesTo(id, call.caller)) {
      call.assertPresent()
      try {
        const task = await route.attempt(call, { canRetryAfterSend: true }, question)
        if (task === undefined) continue
        this.known.remember(id, route.channelId)
        this.ended.record(id, route.channelId, task, call)
        return task
      } catch (error) {
        failure ??= { error }
      }
    }
    throw failure === undefined ? unknownTask() : failure.error
  }

  private routesTo(id: string, caller: Caller): readonly PinnedRoute<ImageProvider>[] {
    const routes = this.router.imageChannels(caller)
    // A key that the gateway does not know is good for channels that pass it on, and for nothing else.
    if (routes.length === 0 && caller.bearer !== undefined) {
      throw new GatewayError('unauthorized', 'The API key is not valid.')
    }
    const knownId = this.known.find(id)
    const isKnown = ({ channelId }: PinnedRoute<ImageProvider>): boolean => channelId === knownId
    return [...routes.filter(isKnown), ...routes.filter((route) => !isKnown(route))]
  }
}
