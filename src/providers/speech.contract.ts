import type { ModelClass } from '../config/channel-config.js'
import type { JsonBody } from '../core/json-body.js'
import type { UpstreamAnswer } from '../core/upstream-answer.js'
import type { CallContext } from './call-context.js'

/** Fields of the specification's speech request; others travel on in the body's bytes. */
export interface SpeechFields {
  readonly model: string
  readonly input: string
  readonly voice: string | { readonly id: string }
  readonly instructions?: string | null
  readonly response_format?: string | null
  readonly speed?: number | null
  readonly stream_format?: string | null
  readonly metadata?: Readonly<Record<string, unknown>> | null
}

export interface SpeechCall {
  readonly body: JsonBody<SpeechFields>
  readonly modelClass: ModelClass
}

/** Turns text into audio: raw bytes in the format asked for, or the one event form of every provider. */
export interface SpeechProvider {
  speak(speech: SpeechCall, context: CallContext): Promise<UpstreamAnswer>
}
