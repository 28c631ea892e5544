import { createHash } from 'node:crypto'
import {
  CALLER_KEY,
  chatAnswer,
  MODELS,
  orderText,
  SPEECH_BYTES,
  STREAM_CHUNKS,
  streamText,
  UPLOAD_BYTES,
  UPSTREAM_KEY,
  wavFile,
} from './wire.mjs'

const FILLER =
  'Explain in one paragraph why a relay should forward the bytes it was given and not what it made of them. '

const SYSTEM = 'You are a concise assistant.'
const QUESTION = FILLER.repeat(8)
const userSays = (content) => ({ role: 'user', content })

function chatBody(extra, orders) {
  const order = orders ? orderText(orders) : ''
  const messages = [{ role: 'system', content: SYSTEM }, userSays(order + QUESTION)]
  return JSON.stringify({ model: MODELS.chat, messages, max_tokens: 256, temperature: 0.7, ...extra })
}

const messagesBody = (extra) =>
  JSON.stringify({ system: SYSTEM, messages: [userSays(QUESTION)], max_tokens: 256, temperature: 0.7, ...extra })

const responsesBody = (extra) =>
  JSON.stringify({
    instructions: SYSTEM,
    input: QUESTION,
    max_output_tokens: 256,
    temperature: 0.7,
    store: false,
    ...extra,
  })

const json = (path, body) => ({ path, contentType: 'application/json', body: Buffer.from(body) })

function uploadRequest() {
  const boundary = '----benchboundary7d93a1c0'
  const head = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="speech.wav"\r\nContent-Type: audio/wav\r\n\r\n`
  const tail = `\r\n--${boundary}\r\nContent-Disposition: form-data; name="model"\r\n\r\n${MODELS.transcription}\r\n--${boundary}--\r\n`
  const file = wavFile(UPLOAD_BYTES)
  return {
    path: '/v1/audio/transcriptions',
    contentType: `multipart/form-data; boundary=${boundary}`,
    body: Buffer.concat([Buffer.from(head), file, Buffer.from(tail)]),
    fileSha256: createHash('sha256').update(file).digest('hex'),
  }
}

function checkChat(body) {
  const contentOf = (bytes) => JSON.parse(bytes.toString()).choices[0].message.content
  if (contentOf(body) !== contentOf(chatAnswer())) throw new Error('the answer says something else')
}

function checkStream(body, withUsage) {
  const frames = body.toString().split('\n\n')
  if (frames.pop() !== '' || frames.pop() !== 'data: [DONE]') throw new Error('the stream does not end in [DONE]')
  const chunks = frames.filter((text) => text.startsWith('data: ')).map((text) => JSON.parse(text.slice(6)))
  const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')
  const expected = STREAM_CHUNKS + (withUsage ? 1 : 0)
  if (chunks.length !== expected) throw new Error(`the stream has ${chunks.length} chunks, expected ${expected}`)
  if (text !== streamText(STREAM_CHUNKS)) throw new Error('the stream spells another text')
  if (withUsage && chunks.at(-1).usage?.total_tokens === undefined) throw new Error('the usage chunk is missing')
}

const checkText = (text) => (body) => {
  if (!body.includes(JSON.stringify(text))) throw new Error('the answer says something else')
}

const ANSWER_TEXT = streamText(122)
const PACE_MS = 5

const speechRequest = (orders) => {
  const input = orderText(orders) + FILLER.repeat(8)
  const body = { model: MODELS.speech, input, voice: 'alloy', response_format: 'mp3' }
  return json('/v1/audio/speech', JSON.stringify(body))
}

/** A conversation of many turns, whose texts have what JSON escapes. */
function longPrompt(bytes) {
  const turn = (index) => ({ role: index % 2 === 0 ? 'user' : 'assistant', content: `"${QUESTION}"\n` })
  return Array.from({ length: Math.ceil(bytes / QUESTION.length) }, (_, index) => turn(index))
}

const pictureOf = (bytes) => [
  userSays([
    { type: 'text', text: 'What does this show?' },
    {
      type: 'image_url',
      image_url: { url: `data:image/png;base64,${Buffer.alloc((bytes * 3) / 4, 7).toString('base64')}` },
    },
  ]),
]

/** The chat of 1 KB, of another model. */
export const chatOf = (model) => json('/v1/chat/completions', chatBody({ model }))

/** A stream of `frames` frames, one every `paceMs`. */
export const pacedStream = (frames, paceMs) =>
  json('/v1/chat/completions', chatBody({ stream: true, stream_options: { include_usage: true } }, { frames, paceMs }))

/**
 * What is sent, which counter of the upstream it moves, what a right answer is, and how a CPU slot drives it.
 * `target` is the highest accepted ratio gateway / yardstick; `peerTargets` are those to other yardsticks, by their roles;
 * with `isStamped` no two answers are alike, as the upstream's clock is in them.
 */
export const SCENARIOS = {
  chat: {
    title: 'chat JSON, 1 KB',
    counter: 'chat',
    request: json('/v1/chat/completions', chatBody({})),
    check: checkChat,
    concurrency: 32,
    target: 1.25,
    peerTargets: { go: 0.65 },
  },
  messages: {
    title: 'messages JSON, 1 KB',
    counter: 'messages',
    request: json('/v1/messages', messagesBody({ model: MODELS.messages })),
    check: checkText(ANSWER_TEXT),
    concurrency: 32,
    target: 1.25,
    peerTargets: { go: 0.65 },
  },
  prompt: {
    title: 'chat, prompt of 100 KB',
    counter: 'chat',
    request: json('/v1/chat/completions', chatBody({ messages: longPrompt(100_000) })),
    check: checkChat,
    concurrency: 16,
    target: 1.2,
  },
  picture: {
    title: 'chat, picture of 1 MB',
    counter: 'chat',
    request: json('/v1/chat/completions', chatBody({ messages: pictureOf(1_048_576) })),
    check: checkChat,
    concurrency: 4,
    target: 1,
  },
  stream: {
    title: `chat SSE, ${STREAM_CHUNKS} chunks`,
    counter: 'stream',
    request: json('/v1/chat/completions', chatBody({ stream: true, stream_options: { include_usage: true } })),
    check: (body) => checkStream(body, true),
    concurrency: 32,
    chunks: STREAM_CHUNKS,
    target: 1.3,
    peerTargets: { go: 0.95 },
  },
  streamPlain: {
    title: 'same, usage not asked',
    counter: 'stream',
    request: json('/v1/chat/completions', chatBody({ stream: true })),
    check: (body) => checkStream(body, false),
    concurrency: 32,
    chunks: STREAM_CHUNKS,
    target: 1.3,
  },
  streamPaced: {
    title: `chat SSE, a chunk each ${PACE_MS} ms`,
    counter: 'stream',
    request: pacedStream(STREAM_CHUNKS, PACE_MS),
    isStamped: true,
    check: (body) => checkStream(body, true),
    concurrency: 32,
    chunks: STREAM_CHUNKS,
    target: 1.08,
    peerTargets: { go: 1.2 },
  },
  speech: {
    title: 'speech, 200 KB',
    counter: 'speech',
    request: speechRequest({ bytes: SPEECH_BYTES }),
    check: (body) => {
      if (body.length !== SPEECH_BYTES) throw new Error(`${body.length} bytes of speech, expected ${SPEECH_BYTES}`)
    },
    concurrency: 32,
    target: 1,
  },
  upload: {
    title: 'upload, 25 MB',
    counter: 'upload',
    request: uploadRequest(),
    check: (body) => {
      if (typeof JSON.parse(body.toString()).text !== 'string') throw new Error('the transcript has no text')
    },
    concurrency: 2,
    limit: 40,
    megabytes: UPLOAD_BYTES / 1_000_000,
    target: 1.8,
  },
}

const DELTA = /"delta":("[^"]*")|"(?:text|content)":("[^"]*")/

/** The text that the events of a stream spell, in any dialect, and its end. */
const checkEvents = (end) => (body) => {
  const frames = body.toString().split('\n\n')
  if (frames.pop() !== '' || !frames.at(-1).includes(end)) throw new Error(`the stream does not end in ${end}`)
  const deltas = frames
    .filter((frame) => /\.delta"|content_block_delta|chunk"/.test(frame))
    .map((frame) => DELTA.exec(frame))
  const text = deltas.map((found) => (found === null ? '' : JSON.parse(found[1] ?? found[2]))).join('')
  if (text !== streamText(STREAM_CHUNKS)) throw new Error('the stream spells another text')
}

const CALLS = {
  chat: { path: '/v1/chat/completions', body: chatBody, isLast: '[DONE]' },
  messages: { path: '/v1/messages', body: messagesBody, isLast: 'message_stop' },
  responses: { path: '/v1/responses', body: responsesBody, isLast: 'response.completed' },
}
const UPSTREAMS = {
  chat: { model: MODELS.chat, counters: ['chat', 'stream'] },
  messages: { model: MODELS.messages, counters: ['messages', 'messagesStream'] },
}

function dialectScenario(client, upstream, isStreamed) {
  const { path, body, isLast } = CALLS[client]
  const { model, counters } = UPSTREAMS[upstream]
  const extra = isStreamed
    ? { stream: true, ...(client === 'chat' && { stream_options: { include_usage: true } }) }
    : {}
  return {
    title: `${client === upstream ? client : `${client} over ${upstream}`}, ${isStreamed ? `${STREAM_CHUNKS} chunks` : '1 KB'}`,
    counter: counters[isStreamed ? 1 : 0],
    request: json(path, body({ model, ...extra })),
    check: isStreamed ? checkEvents(isLast) : checkText(ANSWER_TEXT),
    concurrency: 32,
  }
}

/**
 * Calls that are translated, each beside the relayed one to the same upstream. `target`: what a call, or a chunk, may cost more, in calls or
 * chunks of the yardstick: 60 µs and 8 µs on the machine of README.md, where that takes 44 µs and 2.25 µs.
 */
export const TRANSLATED = [
  ['chat', 'messages'],
  ['messages', 'chat'],
  ['responses', 'messages'],
  ['responses', 'chat'],
].flatMap(([client, upstream]) =>
  [false, true].map((isStreamed) => ({
    translated: dialectScenario(client, upstream, isStreamed),
    relayed: dialectScenario(upstream, upstream, isStreamed),
    ...(isStreamed ? { chunks: STREAM_CHUNKS, target: 8 / 2.25 } : { target: 60 / 44 }),
  })),
)

/** A speech answer of any size. */
export const longSpeech = (bytes) => speechRequest({ bytes })

/** The request's bytes as they go to `target`, a GET when it has no body; requests to the upstream itself have its own key. */
export function wireBytes({ path, contentType, body }, target, key = target.direct ? UPSTREAM_KEY : CALLER_KEY) {
  const head = [
    `${body === undefined ? 'GET' : 'POST'} ${path} HTTP/1.1`,
    `Host: 127.0.0.1:${target.port}`,
    `Authorization: Bearer ${key}`,
    'Accept: */*',
    'User-Agent: gateway-bench',
    ...(body === undefined ? [] : [`Content-Type: ${contentType}`, `Content-Length: ${body.length}`]),
  ]
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body ?? Buffer.alloc(0)])
}
