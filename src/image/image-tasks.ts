import { Injectable } from '@nestjs/common'
import type { Caller } from '../core/caller.js'
import { GatewayError } from '../core/gateway-error.js'
import type { Call } from '../core/request-context.js'
import type { CallContext } from '../providers/call-context.js'
import type { ImageProvider, UpstreamImageTask } from '../providers/image.contract.js'
import { type PinnedRoute, ProviderRouter } from '../routing/router.js'
import { EndedImages } from './ended-images.js'
import { KnownChannels } from './known-channels.js'
import { unknownTask } from './task-id.js'

export type TaskQuestion = (provider: ImageProvider, context: CallContext) => Promise<UpstreamImageTask | undefined>

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
  async ask(id: string, call: Call, question: TaskQuestion): Promise<UpstreamImageTask> {
    let failure: { readonly error: unknown } | undefined
    for (const route of this.routesTo(id, call.caller)) {
      call.assertPresent()
      try {
        const task = await route.attempt(call, { repeatableOnceSent: true }, question)
        if (task === undefined) continue
        this.known.remember(id, route.channelId)
        this.ended.note(id, route.channelId, task, call)
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
