import { randomUUID } from 'node:crypto'
import { synthesizeSpeech } from '@multi-model-gateway/sandbox/audio/speech-synthesizer.js'
import { strToU8 } from 'fflate'
import { FormData } from 'undici'
import { wordFile, wordParagraph } from '../../support/office-files.js'
import { pdfOf } from '../../support/pdf-files.js'
import { type Random, Turns } from '../soak-records.js'
import { type Ending, HttpCaller, type Question, RealtimeTalk } from './http-caller.js'
import { type KeyName, KEYS } from './mixed-upstreams.js'

/** A document as a caller uploads it. */
export interface SoakFile {
  readonly bytes: Uint8Array
  readonly contentType: string
}

const BROKEN_EACH = 8
const MOST_ROWS = 500
const PDF = 'application/pdf'
const WORD = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'

const SENTENCE = 'A kettle is a vessel in which water is brought to the boil.'
/** Each file another one: those that are known already are not read again. */
const sentenceOf = (random: Random): string => `${SENTENCE} Number ${Math.floor(random.next() * 1e9)}.`
const wordOf = (sentence: string): Uint8Array => wordFile(wordParagraph(sentence).repeat(40))
const pdfWith = (sentence: string): Uint8Array =>
  pdfOf({ pages: [{ content: `BT /F1 12 Tf 50 700 Td (${sentence}) Tj ET` }] })
const wordDocument = wordOf(SENTENCE)

/** Files that no reader can make anything of. */
const BROKEN: readonly SoakFile[] = [
  // Cut: the directory of an archive stands at its end.
  { bytes: wordDocument.subarray(0, wordDocument.length / 2), contentType: WORD },
  { bytes: strToU8('%PDF-1.7\nnothing of what a document needs follows\n%%EOF\n'), contentType: PDF },
  // Of no kind that is read.
  { bytes: Uint8Array.from({ length: 2048 }, (_, at) => (at * 131) % 256), contentType: 'application/octet-stream' },
]

/** Tables, PDFs and Word documents in turn, and among them some that are broken. */
class SoakFiles {
  private readonly broken = new Turns(BROKEN, BROKEN_EACH)
  private readonly sound = new Turns(
    [
      (random: Random) => ({ bytes: tableOf(random), contentType: 'text/csv' }),
      (random: Random) => ({ bytes: pdfWith(sentenceOf(random)), contentType: PDF }),
      (random: Random) => ({ bytes: wordOf(sentenceOf(random)), contentType: WORD }),
    ],
    1,
  )

  next(random: Random): SoakFile {
    const file = this.broken.next() ?? this.sound.next()?.(random)
    if (file === undefined) throw new Error('there is no file')
    return file
  }
}

const tableOf = (random: Random): Uint8Array => {
  const row = `kettle,${Math.floor(random.next() * 1e9)}\n`
  return strToU8(`name,number\n${row.repeat(Math.ceil(random.between(1, MOST_ROWS)))}`)
}

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
  realtimeSlow: 1,
  page: 8,
  file: 4,
  task: 6,
  refused: 4,
} as const
export type Traffic = keyof typeof TRAFFIC

const LONGEST_STAY_MS = 120
/** Twice as long as a task takes. */
const LONGEST_WATCH_MS = 4000
const SPEECH_MODELS = ['tts-1', 'gpt-4o-mini-tts', 'p2-tts', 'speech-02-turbo']
const SPEECH_FORMATS = ['mp3', 'wav', 'pcm', 'flac']
/** Of speech and of transcriptions: those that are asked for as events. */
const EVENTS_SHARE = 0.3
/** Of all calls: those with the key that has narrow limits. */
const NARROW_SHARE = 0.12
/** For a page to be fetched and read, in seconds: short, so that servers that fall silent do not hold many callers. */
const PAGE_TIMEOUT_SECONDS = 3

/** Calls one gateway in every way there is. */
export class MixedTraffic {
  private readonly http: HttpCaller
  private readonly files = new SoakFiles()
  private readonly realtime: RealtimeTalk
  private readonly recording = Buffer.concat([
    ...synthesizeSpeech('What is said in this recording does not matter.', { format: 'wav', speed: 1 }),
  ])
  private limitedWide = 0

  constructor(
    url: string,
    private readonly pageUrl: (random: Random) => string,
  ) {
    this.http = new HttpCaller(url)
    this.realtime = new RealtimeTalk(url.replace(/^http/, 'ws'))
  }

  /** What callers met with that no fault of an upstream excuses. */
  get faults(): readonly string[] {
    const { limitedWide } = this
    const { hung } = this.realtime
    return [
      ...hung.map((manner) => `a realtime session hung (${manner})`),
      ...(limitedWide === 0 ? [] : [`${limitedWide} calls ran into limits that are wide enough for all of them`]),
    ]
  }

  /** One call; never rejects. */
  async call(traffic: Traffic, random: Random): Promise<Ending> {
    const key = random.chance(NARROW_SHARE) ? 'narrow' : 'wide'
    const ending = await this.make(traffic, random, key)
    if (ending === 'limited' && key === 'wide') this.limitedWide += 1
    return ending
  }

  /** How many requests and sessions a key has under way, as the gateway says. */
  inUse(key: KeyName): Promise<number> {
    return this.http.inUse(key)
  }

  private async make(traffic: Traffic, random: Random, key: KeyName): Promise<Ending> {
    const ask = (question: Question): Promise<Ending> => this.http.ask(question, key)
    switch (traffic) {
      case 'chat':
        return ask({ path: '/v1/chat/completions', json: chat('Hello there.', false) })
      case 'chatStream':
        return ask({ path: '/v1/chat/completions', json: chat(`#chunks=${amount(random, 200)}`, true) })
      case 'chatAborted':
        return ask({ path: '/v1/chat/completions', json: chat('#chunks=5000', true), stayMs: stay(random) })
      case 'messagesStream':
        return ask({ path: '/v1/messages', json: message(`#chunks=${amount(random, 200)}`) })
      case 'messagesAborted':
        return ask({ path: '/v1/messages', json: message('#chunks=5000'), stayMs: stay(random) })
      case 'speech':
        return ask({ path: '/v1/audio/speech', json: speech(random, 'The kettle is on the stove. ') })
      case 'speechAborted':
        return ask({
          path: '/v1/audio/speech',
          json: speech(random, 'The kettle is on the stove. '.repeat(60)),
          stayMs: stay(random),
        })
      case 'transcription':
        return ask({ path: '/v1/audio/transcriptions', body: this.form(random) })
      case 'uploadAborted':
        return ask({ path: '/v1/audio/transcriptions', body: this.form(random), stayMs: 1 + stay(random) / 10 })
      case 'realtime':
        return this.realtime.hold(KEYS[key], 'whole')
      case 'realtimeDropped':
        return this.realtime.hold(KEYS[key], 'dropped')
      case 'realtimeSlow':
        return this.realtime.hold(KEYS[key], 'slow')
      case 'page':
        return ask({ path: '/v1/document/parse', json: { url: this.pageUrl(random), timeout: PAGE_TIMEOUT_SECONDS } })
      case 'file': {
        const { bytes, contentType } = this.files.next(random)
        return ask({ path: '/v1/document/parse', body: bytes, contentType })
      }
      case 'task':
        return this.follow(random, ask)
      case 'refused':
        return ask({ path: '/v1/chat/completions', json: { model: 'nobody-knows-it', messages: [] } })
    }
  }

  close(): Promise<void> {
    return this.http.close()
  }

  /** Makes a video and looks at it; now and then follows its events, for a moment or up to its end. */
  private async follow(random: Random, ask: (question: Question) => Promise<Ending>): Promise<Ending> {
    const externalId = `soak-${randomUUID()}`
    const json = { model_name: 'vidgen-v1', prompt: 'a red kite', external_task_id: externalId }
    const ending = await ask({ path: '/vidgen/v1/videos/text2video', json })
    if (ending !== 'answered') return ending
    const task = `/vidgen/v1/videos/text2video/${externalId}`
    return random.chance(0.3)
      ? ask({ path: `${task}/events`, stayMs: random.between(0, LONGEST_WATCH_MS) })
      : ask({ path: task })
  }

  private form(random: Random): FormData {
    const form = new FormData()
    const asEvents = random.chance(EVENTS_SHARE)
    form.set('model', asEvents ? 'gpt-4o-mini-transcribe' : 'whisper-1')
    if (asEvents) form.set('stream', 'true')
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
  ...(random.chance(EVENTS_SHARE) ? { stream_format: 'sse' } : {}),
})
