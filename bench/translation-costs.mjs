// What a translation adds to a relayed call: CPU time of a request of 1 KB with its answer of 1 KB, and of each event of a stream.
// Nothing is sent: the translators get bytes and give bytes, as in a call.
import { factsOf } from '../dist/dialects/model-facts.js'
import { chatOverMessages } from '../dist/dialects/translations/chat-over-messages/chat-over-messages.js'
import { messagesOverChat } from '../dist/dialects/translations/messages-over-chat/messages-over-chat.js'
import { responsesOverChat } from '../dist/dialects/translations/responses-over-chat/responses-over-chat.js'
import { responsesOverMessages } from '../dist/dialects/translations/responses-over-messages/responses-over-messages.js'
import { OwnerSeals } from '../dist/dialects/translations/seals.js'
import { Verdicts } from '../dist/dialects/verdicts.js'
import { JsonBody } from '../dist/core/json-body.js'
import { JsonTexts } from '../dist/core/json-text.js'
import { jsonOf } from '../dist/core/sse.js'
import { median } from './statistics.mjs'
import { chatAnswer, contentFrame, firstMessagesEvents, messagesAnswer, messagesDelta, MODELS } from './wire.mjs'

const ROUNDS = 15
const CALLS = 5_000
const CHUNKS = 100
const TEXT =
  'Explain in one paragraph why a relay should forward the bytes it was given and not what it made of them. '.repeat(8)

/** The events before the deltas, a delta, and those after. */
const MESSAGES_EVENTS = {
  first: firstMessagesEvents().map((frame) => Buffer.from(frame)),
  delta: Buffer.from(messagesDelta(' gateway')),
}
const CHAT_EVENTS = {
  first: [Buffer.from(contentFrame(0, CHUNKS, true))],
  delta: Buffer.from(contentFrame(2, CHUNKS, true)),
}

const conversation = [{ role: 'user', content: TEXT }]
const CHAT_REQUEST = { model: MODELS.chat, messages: conversation, max_tokens: 256, temperature: 0.7 }
const RESPONSES_REQUEST = { model: MODELS.chat, input: TEXT, max_output_tokens: 256, temperature: 0.7 }

const PAIRS = [
  {
    name: 'chat over messages',
    translate: chatOverMessages,
    request: CHAT_REQUEST,
    answer: messagesAnswer(),
    events: MESSAGES_EVENTS,
  },
  {
    name: 'messages over chat',
    translate: messagesOverChat,
    request: CHAT_REQUEST,
    answer: chatAnswer(),
    events: CHAT_EVENTS,
  },
  {
    name: 'responses over messages',
    translate: responsesOverMessages,
    request: RESPONSES_REQUEST,
    answer: messagesAnswer(),
    events: MESSAGES_EVENTS,
  },
  {
    name: 'responses over chat',
    translate: responsesOverChat,
    request: RESPONSES_REQUEST,
    answer: chatAnswer(),
    events: CHAT_EVENTS,
  },
]

const target = {
  upstreamModel: 'bench',
  facts: factsOf(undefined),
  requestId: 'bench',
  seals: new OwnerSeals(Buffer.from('bench'), 'bench'),
}

const microsecondsNow = () => {
  const { user, system } = process.cpuUsage()
  return user + system
}

function costOf(run, calls) {
  const costs = []
  for (let round = -3; round < ROUNDS; round++) {
    const startedAt = microsecondsNow()
    for (let call = 0; call < calls; call++) run()
    // The first are for compiling.
    if (round >= 0) costs.push((microsecondsNow() - startedAt) / calls)
  }
  return median(costs)
}

/** CPU time in µs by pair: of a whole call, and of an event. */
export function translationCosts() {
  return PAIRS.map(({ name, translate, request, answer, events }) => {
    const [client, , upstream] = name.split(' ')
    // Parsed for its check in a relayed call as well.
    const body = JsonBody.parse(Buffer.from(JSON.stringify(request)))
    const begin = () => translate(body, target, new Verdicts({ client, upstream }, false))
    const whole = () => {
      const translation = begin()
      return Buffer.from(translation.response(JSON.parse(answer.toString()), new JsonTexts(answer)))
    }
    const stream = begin().events()
    for (const frame of events.first) stream.event(jsonOf(frame))
    const one = () => Buffer.from(stream.event(jsonOf(events.delta)))
    return { name, callUs: costOf(whole, CALLS), eventUs: costOf(one, CALLS) }
  })
}
