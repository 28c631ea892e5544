import { Injectable } from '@nestjs/common'
import type { Call } from '../core/request-context.js'
import type { UpstreamVideoTask, VideoKind, VideoProvider } from '../providers/video.contract.js'
import { type PinnedRoute, ProviderRouter } from '../routing/router.js'
import { isUpstreamExternalId } from '../tasks/task.js'

/** Tasks this gateway never saw: made before it stood there, or around it (channel option `unknownTasks`). */
@Injectable()
export class UnknownTasks {
  constructor(private readonly router: ProviderRouter) {}

  /**
   * Asks one channel after the other until one knows the task; undefined when none does. Rejects with the first failure
   * when a channel that could not be asked may be the one that knows it.
   */
  async ask(kind: VideoKind, id: string, call: Call): Promise<UpstreamVideoTask | undefined> {
    let failure: { readonly error: unknown } | undefined
    for (const route of this.router.videoChannels(call.caller).filter(isRelaying)) {
      call.assertPresent()
      try {
        const found = await route.attempt(call, { repeatableOnceSent: true }, (provider, context) =>
          provider.read(kind, id, context),
        )
        if (found !== undefined) return isOwned(found, call) ? undefined : found
      } catch (error) {
        failure ??= { error }
      }
    }
    if (failure !== undefined) throw failure.error
    return undefined
  }
}

const isRelaying = ({ options }: PinnedRoute<VideoProvider>): boolean => options['unknownTasks'] !== 'refuse'

/**
 * A task made through a gateway has an owner, also where this store does not know it, yet or any more. With an upstream
 * key of the caller's own the upstream decides.
 */
function isOwned({ object }: UpstreamVideoTask, { caller }: Call): boolean {
  const { task_info: info } = JSON.parse(object) as { readonly task_info?: unknown }
  const id = typeof info === 'object' && info !== null && 'external_task_id' in info ? info.external_task_id : undefined
  return caller.bearer === undefined && typeof id === 'string' && isUpstreamExternalId(id)
}
