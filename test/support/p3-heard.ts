import { GatewayError } from '../../src/core/gateway-error.js'
import type { P3Envelope } from '../../src/providers/p3/p3-envelope.js'
import { P3AudioSource } from '../../src/providers/p3/p3-stream.js'
import { ManualSource, RecordingSink } from './byte-streams.js'

const audioOf = (text: string): string => Buffer.from(text).toString('hex')

/** An answer in one object; `more` lies over it. */
export const json = (audio: string, status: number | undefined, more: object = {}): string =>
  JSON.stringify({ data: { audio: audioOf(audio), status, ced: '' }, trace_id: 't', ...more })

/** The same as one event of a stream. */
export const event = (audio: string, status = 1, more: object = {}): string => `data: ${json(audio, status, more)}\n\n`

export interface Heard {
  readonly audio: string
  /** `end`, or what went wrong. */
  readonly ending: string | undefined
  readonly envelopes: readonly P3Envelope[]
  readonly asked: readonly string[]
  readonly error?: GatewayError
}

/** What a code other than 0 is told as. */
export const REFUSED = new GatewayError('rate_limited', 'refused')

/** Hears an answer that arrives in these pieces and, unless it is left open, ends. */
export function hear(pieces: readonly (string | Buffer)[], ending: 'end' | 'open' | GatewayError = 'end'): Heard {
  const body = new ManualSource()
  const sink = new RecordingSink()
  const envelopes: P3Envelope[] = []
  const source = new P3AudioSource(body, (envelope) => {
    envelopes.push(envelope)
    if (envelope.code !== 0) throw REFUSED
  })
  source.start(sink)
  body.data(...pieces)
  if (ending === 'end') body.end()
  else if (ending !== 'open') body.fail(ending)
  const isEnd = sink.ending === 'end' || sink.ending === undefined
  const heard = { audio: sink.text, envelopes, asked: body.asked }
  return isEnd
    ? { ...heard, ending: sink.ending as string | undefined }
    : { ...heard, ending: (sink.ending as GatewayError).message, error: sink.ending as GatewayError }
}
