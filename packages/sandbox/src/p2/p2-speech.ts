import { streamedWavHeader } from '../audio/audio-containers.js'
import { SAMPLE_RATE } from '../audio/pcm-voice.js'
import { CHARACTER_MS, type SpeechFormat, synthesizeSpeech } from '../audio/speech-synthesizer.js'
import { fillerBytes } from '../server/generated-text.js'
import type { JsonObject } from '../server/json-value.js'
import type { SocketSession } from '../server/websocket-session.js'
import { failureOf, isBackendFailure, type P2Failure, type P2Wish, type P2Word } from './p2-errors.js'
import {
  acknowledgementFrame,
  audioFrame,
  bareAcknowledgementFrame,
  errorFrame,
  frontEndFrame,
  type LastForm,
  lastFrame,
  undecodableFrame,
} from './p2-frames.js'
import type { P2Context, P2Encoding, P2Request } from './p2-request.js'

const FORMATS: Readonly<Record<P2Encoding, SpeechFormat>> = { pcm: 'pcm', wav: 'pcm', mp3: 'mp3', ogg_opus: 'opus' }
const FLAT_PIECE_BYTES = 16_384
const BYTES_PER_SAMPLE = 2
/** Opus of the synthesizer is at least that dense, so that a text of this length makes the bytes wished for. */
const OPUS_BYTES_PER_CHARACTER = 150

/** The audio of a request, about 120 ms at a time; the flat bytes of `#bytes=N` when N is given. */
export function* speak(request: P2Request, flatBytes: number | undefined): Generator<Buffer, void, undefined> {
  const { encoding, rate } = request
  if (flatBytes !== undefined && encoding !== 'ogg_opus') {
    yield* fillerBytes(flatBytes, FLAT_PIECE_BYTES)
    return
  }
  const text = flatBytes === undefined ? request.text : longText(flatBytes)
  if (encoding === 'wav') yield streamedWavHeader(rate)
  for (const chunk of synthesizeSpeech(text, { format: FORMATS[encoding], speed: request.speed })) {
    yield rate === SAMPLE_RATE ? chunk : resample(chunk, rate)
  }
}

/**
 * Takes the sample before each new instant. The voices have nothing above 4 kHz, so no filter is needed; chunks are whole
 * frames of 480 samples, so each can be taken alone.
 */
function resample(pcm: Buffer, rate: number): Buffer {
  const samples = Math.floor((pcm.length / BYTES_PER_SAMPLE) * (rate / SAMPLE_RATE))
  const resampled = Buffer.alloc(samples * BYTES_PER_SAMPLE)
  for (let index = 0; index < samples; index += 1) {
    const source = Math.floor((index * SAMPLE_RATE) / rate)
    resampled.writeInt16LE(pcm.readInt16LE(source * BYTES_PER_SAMPLE), index * BYTES_PER_SAMPLE)
  }
  return resampled
}

function longText(bytes: number): string {
  const sentence = 'sand box '
  return sentence.repeat(Math.ceil(bytes / OPUS_BYTES_PER_CHARACTER / sentence.length))
}

const NORMAL_CLOSURE = 1000
/** Audio frames before a fault that strikes in the middle. */
const FRAMES_BEFORE_FAULT = 2

/** Answers a good request, with the faults wished for. Ends when the conversation is over. */
export async function deliver(
  session: SocketSession,
  request: P2Request,
  wish: P2Wish,
  context: P2Context,
): Promise<void> {
  const { words, failure } = wish
  if (words.has('hang')) {
    await session.closed
    return
  }
  const failsAtOnce = failure !== undefined && !words.has('errmid')
  if (failsAtOnce && !isBackendFailure(failure)) return fail(session, failure, request.reqid, words)
  if (!(await acknowledge(session, words, context))) return
  if (failsAtOnce) return fail(session, failure, request.reqid, words)
  if (words.has('garbage') && !(await session.send(undecodableFrame()))) return
  if (words.has('textframe') && !(await session.send('{"audio":"none"}'))) return
  const outcome = await sendAudio(session, request, wish, context)
  // What a client did not wait for was spoken all the same; what broke off here was not.
  if (outcome !== 'broken') context.served.add(request.model, { characters: Array.from(request.text).length })
  if (outcome === 'sent') await awaitClose(session, context)
}

/** Sends an error frame and closes, as the upstream does by itself. */
export async function fail(
  session: SocketSession,
  failure: P2Failure,
  reqid: string,
  words: ReadonlySet<P2Word>,
): Promise<void> {
  const { code, text } = failure
  const shown = words.has('jsonerr') ? JSON.stringify({ reqid, code, message: text }) : text
  session.clientMayLeave = true
  const sending = session.send(errorFrame(code, shown, words.has('gziperr')))
  // At once, so that no audio of a speech under way follows the error.
  session.close(NORMAL_CLOSURE)
  await sending
}

async function acknowledge(session: SocketSession, words: ReadonlySet<P2Word>, context: P2Context): Promise<boolean> {
  if (words.has('noack') || !context.acknowledge) return true
  return session.send(words.has('bareack') ? bareAcknowledgementFrame() : acknowledgementFrame())
}

/** `sent` = everything, the last frame included; `left` = the client has gone after the first audio. */
async function sendAudio(
  session: SocketSession,
  request: P2Request,
  wish: P2Wish,
  context: P2Context,
): Promise<'sent' | 'left' | 'broken'> {
  const { words } = wish
  let sequence = 0
  for (const { audio, isLast } of train(request, wish)) {
    if ((isLast || sequence === FRAMES_BEFORE_FAULT) && (await struck(session, request, wish))) return 'broken'
    if (sequence > 0 && context.paceMs > 0 && !(await session.waitOpen(context.paceMs))) return 'left'
    sequence += 1
    const frame = isLast ? lastFrame(lastForm(words), sequence, audio) : audioFrame(sequence, audio)
    if (!(await session.send(frame))) return sequence > 1 ? 'left' : 'broken'
    if (sequence === 1 && request.wantsTimestamps && !(await session.send(frontEndFrame(timestamps(request))))) {
      return 'left'
    }
    if (sequence === 1 && words.has('slow') && !(await session.waitOpen(context.gapMs))) return 'left'
  }
  session.clientMayLeave = true
  return 'sent'
}

/** The audio in frames, exactly one of them the last. Holds one frame in advance, or all of it when it is merged. */
function* train(request: P2Request, wish: P2Wish): Generator<{ audio: Buffer; isLast: boolean }, void, undefined> {
  const chunks = speak(request, wish.bytes)
  if (wish.words.has('merge') || request.operation === 'query') {
    yield { audio: Buffer.concat([...chunks]), isLast: true }
    return
  }
  let waiting: Buffer | undefined
  for (const chunk of chunks) {
    if (waiting !== undefined) yield { audio: waiting, isLast: false }
    waiting = chunk
  }
  const rest = waiting ?? Buffer.alloc(0)
  if (wish.words.has('emptylast')) yield { audio: rest, isLast: false }
  yield { audio: wish.words.has('emptylast') ? Buffer.alloc(0) : rest, isLast: true }
}

/** Lets a fault strike that was wished for the middle. Returns true when the conversation is thereby over. */
async function struck(session: SocketSession, request: P2Request, { words, failure }: P2Wish): Promise<boolean> {
  if (words.has('errmid')) await fail(session, failure ?? failureOf(3031), request.reqid, words)
  else if (words.has('cut')) session.breakOff()
  else if (words.has('closeearly')) session.close(NORMAL_CLOSURE)
  else return false
  return true
}

/** After the last frame it is the client's turn to close; a client that forgets it holds a connection for nothing. */
async function awaitClose(session: SocketSession, context: P2Context): Promise<void> {
  if (!(await session.waitOpen(context.closeAfterMs))) return
  session.violations.push('the client did not close after the last frame')
  session.close(NORMAL_CLOSURE)
}

function lastForm(words: ReadonlySet<P2Word>): LastForm {
  if (words.has('flag2bare')) return 'bare'
  return words.has('flag2') ? 'flagged' : 'signed'
}

/** When each word begins and ends, in seconds. */
function timestamps(request: P2Request): JsonObject {
  const secondsPerCharacter = CHARACTER_MS / 1000 / request.speed
  const words = Array.from(request.text.matchAll(/\S+/g), ({ 0: word, index }) => ({
    word,
    start_time: index * secondsPerCharacter,
    end_time: (index + word.length) * secondsPerCharacter,
  }))
  return { reqid: request.reqid, words, phonemes: [] }
}
