import type { JsonBody } from '../core/json-body.js'
import type { UpstreamAnswer } from '../core/upstream-answer.js'
import type { CallContext } from './call-context.js'

/** The fields of a chat completion that the gateway reads; everything else travels on unread. */
export interface ChatFields {
  readonly model: string
  readonly messages: readonly unknown[]
  readonly tools?: readonly unknown[] | null
  /** How many choices were asked for; not judged here. */
  readonly n?: unknown
  readonly stream?: boolean | null
  readonly stream_options?: Readonly<Record<string, unknown>> | null
  readonly modalities?: readonly string[] | null
  readonly audio?: Readonly<Record<string, unknown>> | null
}

export interface ChatProvider {
  complete(body: JsonBody<ChatFields>, context: CallContext): Promise<UpstreamAnswer>
}
