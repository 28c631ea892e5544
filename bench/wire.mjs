/**
 * The bytes both ends of the benchmark agree on: what the upstream answers, and what the driver must therefore receive.
 * Shapes follow the real interfaces: chat frames end in LF, speech is a chunked mp3, `usage` is null until the last frame.
 */
export const UPSTREAM_KEY = 'bench-upstream-key'
export const CALLER_KEY = 'bench-caller-key'
export const MODELS = {
  chat: 'bench-chat',
  messages: 'bench-messages',
  speech: 'bench-tts',
  transcription: 'bench-stt',
  realtime: 'bench-realtime',
}

export const STREAM_CHUNKS = 100
export const SPEECH_BYTES = 204_800
/** Largest file the gateway takes. */
export const UPLOAD_BYTES = 26_214_400

const WORDS = ['The', ' gateway', ' relays', ' what', ' it', ' was', ' sent', ',', ' byte', ' for', ' byte', '.']
const FRAMES_PER_WRITE = 5
/** Frames of 128 kbit/s, 44.1 kHz mp3 are 417 bytes long. */
const MP3_FRAME_BYTES = 417
const USAGE = { prompt_tokens: 211, completion_tokens: 98, total_tokens: 309 }

/** The text a stream of `chunks` chunks spells: the first carries the role, the last the finish reason. */
export function streamText(chunks) {
  return Array.from({ length: chunks - 2 }, (_, index) => WORDS[index % WORDS.length]).join('')
}

function deltaOf(index, chunks) {
  if (index === 0) return { role: 'assistant', content: '', refusal: null }
  return index === chunks - 1 ? {} : { content: WORDS[(index - 1) % WORDS.length] }
}

function frame(choices, usage, obfuscation) {
  const chunk = {
    id: 'chatcmpl-bench0000000000000000000001',
    object: 'chat.completion.chunk',
    created: 1_780_693_557,
    model: MODELS.chat,
    service_tier: 'default',
    system_fingerprint: 'fp_bench',
    choices,
  }
  return `data: ${JSON.stringify(usage === undefined ? { ...chunk, obfuscation } : { ...chunk, usage, obfuscation })}\n\n`
}

/** One content frame. `obfuscation` is the upstream's padding field; paced streams carry their send time in it. */
export function contentFrame(index, chunks, withUsage, obfuscation = 'x'.repeat(index % 13)) {
  const choice = {
    index: 0,
    delta: deltaOf(index, chunks),
    logprobs: null,
    finish_reason: index === chunks - 1 ? 'stop' : null,
  }
  return frame([choice], withUsage ? null : undefined, obfuscation)
}

/** The frames after the content: the usage frame if it was requested, and the end mark. */
export function closingFrames(withUsage) {
  return `${withUsage ? frame([], USAGE, '') : ''}data: [DONE]\n\n`
}

/** A whole stream as the list of buffers the upstream writes, several frames each. */
export function streamWrites(chunks, withUsage) {
  const frames = Array.from({ length: chunks }, (_, index) => contentFrame(index, chunks, withUsage))
  return writesOf([...frames, closingFrames(withUsage)])
}

function writesOf(frames) {
  const writes = []
  for (let at = 0; at < frames.length; at += FRAMES_PER_WRITE) {
    writes.push(Buffer.from(frames.slice(at, at + FRAMES_PER_WRITE).join('')))
  }
  return writes
}

/** The fixed answer of about 1 KB to a chat call that does not stream. */
export function chatAnswer() {
  const message = { role: 'assistant', content: streamText(122), refusal: null, annotations: [] }
  return Buffer.from(
    JSON.stringify({
      id: 'chatcmpl-bench0000000000000000000001',
      object: 'chat.completion',
      created: 1_780_693_557,
      model: MODELS.chat,
      choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop' }],
      usage: USAGE,
      service_tier: 'default',
      system_fingerprint: 'fp_bench',
    }),
  )
}

const MESSAGE = {
  id: 'msg_bench00000000000000000001',
  type: 'message',
  role: 'assistant',
  model: MODELS.messages,
  stop_sequence: null,
}
const INPUT_USAGE = { input_tokens: 211, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 }

/** The same to a messages call. */
export function messagesAnswer() {
  const content = [{ type: 'text', text: streamText(122) }]
  const usage = { ...INPUT_USAGE, output_tokens: 98 }
  return Buffer.from(JSON.stringify({ ...MESSAGE, content, stop_reason: 'end_turn', usage }))
}

const messagesEvent = (type, fields) => `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`

/** What a stream of messages begins with. */
export const firstMessagesEvents = () => [
  messagesEvent('message_start', {
    message: { ...MESSAGE, content: [], stop_reason: null, usage: { ...INPUT_USAGE, output_tokens: 1 } },
  }),
  messagesEvent('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
]

export const messagesDelta = (text) =>
  messagesEvent('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })

/** A whole stream of messages with as many events as a stream of chat has chunks, spelling the same text. */
export function messagesWrites(events) {
  const deltas = Array.from({ length: events - 2 }, (_, index) => messagesDelta(WORDS[index % WORDS.length]))
  return writesOf([
    ...firstMessagesEvents(),
    ...deltas,
    messagesEvent('content_block_stop', { index: 0 }),
    messagesEvent('message_delta', {
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { ...INPUT_USAGE, output_tokens: 98 },
    }),
    messagesEvent('message_stop', {}),
  ])
}

/** 39 silent mp3 frames, about 16 KB: the piece speech is sent in. */
export function speechPiece() {
  const piece = Buffer.alloc(39 * MP3_FRAME_BYTES)
  for (let at = 0; at < piece.length; at += MP3_FRAME_BYTES) piece.writeUInt32BE(0xfffb9000, at)
  return piece
}

/** A playable 24 kHz 16-bit mono WAV of exactly `bytes` bytes: a gateway may look into what it is given. */
export function wavFile(bytes) {
  const file = Buffer.alloc(bytes)
  file.write('RIFF', 0, 'latin1')
  file.writeUInt32LE(bytes - 8, 4)
  file.write('WAVEfmt ', 8, 'latin1')
  file.writeUInt32LE(16, 16)
  file.writeUInt16LE(1, 20)
  file.writeUInt16LE(1, 22)
  file.writeUInt32LE(24_000, 24)
  file.writeUInt32LE(48_000, 28)
  file.writeUInt16LE(2, 32)
  file.writeUInt16LE(16, 34)
  file.write('data', 36, 'latin1')
  file.writeUInt32LE(bytes - 44, 40)
  for (let at = 44; at + 1 < bytes; at += 2) file.writeInt16LE(((at * 37) % 20_000) - 10_000, at)
  return file
}

/**
 * Orders to the upstream travel inside text every gateway relays unchanged, so no unknown field is needed.
 * @param {Record<string, number>} orders e.g. `{ frames: 40, paceMs: 100 }` or `{ bytes: 209715200 }`
 */
export function orderText(orders) {
  return `bench:${Object.entries(orders)
    .map(([name, value]) => `${name}=${value}`)
    .join(',')};`
}

/** Reads what `orderText` wrote out of a request's bytes; an empty object when there is none. */
export function readOrders(body) {
  const start = body.indexOf('bench:')
  if (start === -1) return {}
  const text = body.toString('latin1', start + 6, body.indexOf(';', start))
  return Object.fromEntries(text.split(',').map((pair) => [pair.split('=')[0], Number(pair.split('=')[1])]))
}
