import type { JsonBody } from '../core/json-body.js'
import type { UpstreamAnswer } from '../core/upstream-answer.js'
import type { CallContext } from './call-context.js'

export interface MessagesFields {
  readonly model: string
  readonly messages: readonly unknown[]
  readonly max_tokens?: number | null
  readonly stream?: boolean | null
}

/** A messages-style request with the headers of its dialect that may travel on. */
export interface MessagesCall {
  readonly body: JsonBody<MessagesFields>
  /** `anthropic-version`; the specification's clients may leave it out. */
  readonly version?: string
  /** `anthropic-beta`, a comma-separated list. */
  readonly beta?: string
  /** `?beta=true`, as beta clients send it. */
  readonly betaQuery: boolean
}

export interface MessagesProvider {
  create(messages: MessagesCall, context: CallContext): Promise<UpstreamAnswer>
  countTokens(messages: MessagesCall, context: CallContext): Promise<UpstreamAnswer>
}
