import { randomUUID } from 'node:crypto'
import { Agent, FormData, request } from 'undici'
import { synthesizeSpeech } from '../../../src/sandbox/audio/speech-synthesizer.js'
import { RealtimeProbe } from '../../support/realtime-probe.js'
import type { Random } from '../random.js'

/** What callers do, and how often. */
export const TRAFFIC = {
  chat: 12,
  chatStream: 12,
  chatAborted: 8,
  messagesStream: 8,
  messagesAborted: 4,
  speech: 10,
  speechAborted: 4,
  transcription: 6,
  uploadAborted: 3,
  realtime: 6,
  realtimeDropped: 3,
  page: 8,
  file: 4,
  task: 6,
  refused: 4,
} as const
export type Traffic = keyof typeof TRAFFIC

/** `answered`: whole and 2xx. `refused`: 4xx. `failed`: 5xx, or cut in the middle. `left`: by the caller. */
export type Ending = 'answered' | 'refused' | 'failed' | 'left'

const TIMEOUT_MS = 30_000
const LONGEST_STAY_MS = 120
const SPEECH_MODELS = ['tts-1', 'gpt-4o-mini-tts', 'p2-tts', 'speech-02-turbo']
const SPEECH_FORMATS = ['mp3', 'wav', 'pcm', 'flac']
const REALTIME_MODEL = 'gpt-realtime'

interface Question {
  readonly path: string
  readonly json?: object
  readonly body?: Buffer | FormData
  readonly contentType?: string
  /** The caller leaves after so long. */
  readonly stayMs?: number
}

/** Calls one gateway in every way there is. */
export class MixedTraffic {
  private readonly agent = new Agent({ headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS })
  private readonly recording = Buffer.concat([
    ...synthesizeSpeech('What is said in this recording does not matter.', { format: 'wav', speed: 1 }),
  ])

  constructor(
    private readonly url: string,
    private readonly key: string,
    private readonly pageUrl: (random: Random) => string,
  ) {}

  /** One call; never rejects. */
  async call(traffic: Traffic, random: Random): Promise<Ending> {
    switch (traffic) {
      case 'chat':
        return this.ask({ path: '/v1/chat/completions', json: chat('Hello there.', false) })
      case 'chatStream':
        return this.ask({ path: '/v1/chat/completions', json: chat(`#chunks=${amount(random, 200)}`, true) })
      case 'chatAborted':
        return this.ask({ path: '/v1/chat/completions', json: chat('#chunks=5000', true), stayMs: stay(random) })
      case 'messagesStream':
        return this.ask({ path: '/v1/messages', json: message(`#chunks=${amount(random, 200)}`) })
      case 'messagesAborted':
        return this.ask({ path: '/v1/messages', json: message('#chunks=5000'), stayMs: stay(random) })
      case 'speech':
        return this.ask({ path: '/v1/audio/speech', json: speech(random, 'The kettle is on the stove. ') })
      case 'speechAborted':
        return this.ask({
          path: '/v1/audio/speech',
          json: speech(random, 'The kettle is on the stove. '.repeat(60)),
          stayMs: stay(random),
        })
      case 'transcription':
        return this.ask({ path: '/v1/audio/transcriptions', body: this.form() })
      case 'uploadAborted':
        return this.ask({ path: '/v1/audio/transcriptions', body: this.form(), stayMs: 1 + stay(random) / 10 })
      case 'realtime':
        return this.talk(false)
      case 'realtimeDropped':
        return this.talk(true)
      case 'page':
        return this.ask({ path: '/v1/document/parse', json: { url: this.pageUrl(random) } })
      case 'file':
        return this.ask({ path: '/v1/document/parse', body: fileOf(random), contentType: 'text/csv' })
      case 'task':
        return this.follow(random)
      case 'refused':
        return this.ask({ path: '/v1/chat/completions', json: { model: 'nobody-knows-it', messages: [] } })
    }
  }

  close(): Promise<void> {
    return this.agent.destroy()
  }

  private async ask({ path, json, body, contentType, stayMs }: Question): Promise<Ending> {
    const type = json === undefined ? contentType : 'application/json'
    const sent = json === undefined ? body : JSON.stringify(json)
    const leaving = new AbortController()
    const leave =
      stayMs === undefined
        ? undefined
        : setTimeout(() => {
            leaving.abort()
          }, stayMs)
    try {
      const { statusCode, body: answer } = await request(this.url + path, {
        dispatcher: this.agent,
        method: sent === undefined ? 'GET' : 'POST',
        headers: {
          authorization: `Bearer ${this.key}`,
          ...(path.startsWith('/v1/messages') ? { 'anthropic-version': '2023-06-01' } : {}),
          ...(type === undefined ? {} : { 'content-type': type }),
        },
        body: sent ?? null,
        signal: leaving.signal,
      })
      await answer.dump({ limit: Infinity })
      return statusCode < 300 ? 'answered' : statusCode < 500 ? 'refused' : 'failed'
    } catch {
      return leaving.signal.aborted ? 'left' : 'failed'
    } finally {
      clearTimeout(leave)
    }
  }

  /** A session with one spoken answer; `isDropped`: the caller's connection breaks off in the middle of it. */
  private async talk(isDropped: boolean): Promise<Ending> {
    const url = this.url.replace(/^http/, 'ws')
    let probe: RealtimeProbe | undefined
    try {
      probe = await RealtimeProbe.open({ url, key: this.key, model: REALTIME_MODEL })
      await probe.until('session.created')
      const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hello there.' }] }
      probe.send({ type: 'conversation.item.create', item })
      probe.send({ type: 'response.create' })
      await probe.until(isDropped ? 'response.created' : 'response.done')
      return isDropped ? 'left' : 'answered'
    } catch {
      return 'failed'
    } finally {
      await probe?.close()
    }
  }

  /** Makes a video and looks at it; now and then follows its events for a moment. */
  private async follow(random: Random): Promise<Ending> {
    const externalId = `soak-${randomUUID()}`
    const json = { model_name: 'vidgen-v1', prompt: 'a red kite', external_task_id: externalId }
    const ending = await this.ask({ path: '/vidgen/v1/videos/text2video', json })
    if (ending !== 'answered') return ending
    const task = `/vidgen/v1/videos/text2video/${externalId}`
    return random.chance(0.3) ? this.ask({ path: `${task}/events`, stayMs: 1000 }) : this.ask({ path: task })
  }

  private form(): FormData {
    const form = new FormData()
    form.set('model', 'whisper-1')
    form.set('file', new Blob([this.recording], { type: 'audio/wav' }), 'recording.wav')
    return form
  }
}

const amount = (random: Random, most: number): number => Math.ceil(random.between(1, most))
const stay = (random: Random): number => random.between(0, LONGEST_STAY_MS)

const chat = (content: string, stream: boolean): object => ({
  model: 'gpt-4.1-mini',
  messages: [{ role: 'user', content }],
  stream,
})

const message = (content: string): object => ({
  model: 'claude-haiku-4-5',
  max_tokens: 8000,
  messages: [{ role: 'user', content }],
  stream: true,
})

const speech = (random: Random, input: string): object => ({
  ...{ model: random.pick(SPEECH_MODELS), input, voice: 'alloy' },
  response_format: random.pick(SPEECH_FORMATS),
})

const fileOf = (random: Random): Buffer =>
  Buffer.from(`name,number\n${`kettle,${Math.floor(random.next() * 1e9)}\n`.repeat(amount(random, 500))}`)
