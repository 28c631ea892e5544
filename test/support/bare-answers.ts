import type { Fault } from '@multi-model-gateway/sandbox/server/faults.js'

/** What an upstream answers that says more or less of what was used than the simulators do. */
const answer = (type: string, body: string): Fault => ({
  kind: 'status',
  status: 200,
  headers: { 'content-type': type },
  body,
})

const jsonAnswer = (value: object): Fault => answer('application/json', JSON.stringify(value))

const PIECES = ['Hello', ' there', '.']

const frame = (value: object): string => `data: ${JSON.stringify(value)}\n\n`
const event = (type: string, fields: object = {}): string => `event: ${type}\n${frame({ type, ...fields })}`

/** A chat completion that says "Hello there." */
export const completion = (usage?: object | null): Fault =>
  jsonAnswer({
    id: 'chatcmpl-1',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hello there.' }, finish_reason: 'stop' }],
    ...(usage === undefined ? {} : { usage }),
  })

/** The same in three pieces, and whatever its upstream says of its use. */
export const completionChunks = (usage?: object): Fault => {
  const pieces = PIECES.map((content) => frame({ choices: [{ index: 0, delta: { content } }] }))
  const end = frame({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
  const figures = usage === undefined ? '' : frame({ choices: [], usage })
  return answer('text/event-stream', `${pieces.join('')}${end}${figures}data: [DONE]\n\n`)
}

/** Some audio as events of P1's own, and whatever the last one says of its use. */
export const speechEvents = (audio: Buffer, usage?: object): Fault => {
  const done = { type: 'speech.audio.done', ...(usage === undefined ? {} : { usage }) }
  const events = [{ type: 'speech.audio.delta', audio: audio.toString('base64') }, done]
  return answer('text/event-stream', `${events.map(frame).join('')}data: [DONE]\n\n`)
}

/** The same words as a transcript, without a figure. */
export const wholeTranscript = (): Fault => jsonAnswer({ text: 'Hello there.' })

/** In three pieces, and whatever its upstream says of its use. */
export const transcriptEvents = (usage?: object): Fault => {
  const pieces = PIECES.map((delta) => frame({ type: 'transcript.text.delta', delta }))
  const figures = usage === undefined ? {} : { usage }
  const done = frame({ type: 'transcript.text.done', text: PIECES.join(''), ...figures })
  return answer('text/event-stream', `${pieces.join('')}${done}data: [DONE]\n\n`)
}

/** The same of the messages family. */
export const wholeMessage = (usage?: object): Fault =>
  jsonAnswer({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    content: [{ type: 'text', text: 'Hello there.' }],
    stop_reason: 'end_turn',
    ...(usage === undefined ? {} : { usage }),
  })

/** In three pieces, with what is said of its use at the beginning and at the end. */
export function messageEvents(start?: object, end?: object): Fault {
  const used = (usage: object | undefined): object => (usage === undefined ? {} : { usage })
  const pieces = PIECES.map((text) => event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }))
  const events = [
    event('message_start', { message: { id: 'msg_1', role: 'assistant', content: [], ...used(start) } }),
    ...pieces,
    event('message_delta', { delta: { stop_reason: 'end_turn' }, ...used(end) }),
    event('message_stop'),
  ]
  return answer('text/event-stream', events.join(''))
}
