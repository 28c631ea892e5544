import { GatewayError } from '../core/gateway-error.js'
import type { Call } from '../core/request-context.js'
import type { CallContext } from '../providers/call-context.js'
import type { UpstreamVideoTask, VideoProvider } from '../providers/video.contract.js'
import type { Draft, TaskIntents } from './task-intents.js'
import type { Task } from './task.js'
import type { TaskIds, TaskOrder } from './tasks.js'

/** One create on its way through at most two channels: what is recorded of it, and whether it may have been done. */
export class PendingCreate {
  /** Set once the intent is recorded. */
  task: Task | undefined
  /** Set by a failure after which nobody knows whether the upstream made a task. */
  doubt: unknown

  constructor(
    private readonly order: TaskOrder,
    private readonly draft: Draft,
    private readonly call: Call,
    private readonly intents: TaskIntents,
    private readonly upstreamCallbackUrl: string | undefined,
  ) {}

  /** One attempt on one channel. Nothing is sent before the intent is recorded for that channel. */
  readonly attempt = async (provider: VideoProvider, context: CallContext): Promise<UpstreamVideoTask> => {
    this.assertCallback(context)
    this.task = await (this.task === undefined
      ? this.intents.record(this.draft, context)
      : this.intents.move(this.task, context))
    this.call.assertPresent()
    try {
      return await this.order.send(provider, context, this.idsFor(context))
    } catch (error) {
      // Judged here, attempt by attempt: what the route fails with may be an earlier attempt's error.
      if (mayHaveBeenDone(error)) this.doubt = error
      throw error
    }
  }

  private idsFor({ callersKey }: CallContext): TaskIds {
    const externalId = this.draft.fields.upstreamExternalId
    // The poll that the upstream's call would bring forward could not be made without the caller's key.
    if (callersKey || this.upstreamCallbackUrl === undefined) return { externalId }
    return { externalId, callbackUrl: this.upstreamCallbackUrl }
  }

  /** Without the caller's key a task cannot be followed, so that no change of it would ever be noticed. */
  private assertCallback({ callersKey }: CallContext): void {
    if (!callersKey || this.order.callbackUrl === undefined) return
    throw new GatewayError('invalid_request', "'callback_url' is not supported with an upstream key of your own.", {
      param: 'callback_url',
      code: 'unsupported_parameter',
    })
  }
}

/** Without an attempt in their details these say nothing about how far it came; every other kind means: not far. */
const UNCERTAIN_KINDS: ReadonlySet<string> = new Set(['caller_left', 'upstream_failed', 'upstream_timeout', 'internal'])

function mayHaveBeenDone(error: unknown): boolean {
  if (!(error instanceof GatewayError)) return true
  const { attempt } = error.details
  return attempt === undefined ? UNCERTAIN_KINDS.has(error.kind) : attempt.phase === 'sent'
}
