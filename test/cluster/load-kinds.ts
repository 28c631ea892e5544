import { synthesizeSpeech } from '@multi-model-gateway/sandbox/audio/speech-synthesizer.js'
import { type ImggenSimulator, startImggenSimulator } from '@multi-model-gateway/sandbox/imggen/imggen.simulator.js'
import { startM1Simulator } from '@multi-model-gateway/sandbox/m1/m1.simulator.js'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import { startVidgenSimulator, type VidgenSimulator } from '@multi-model-gateway/sandbox/vidgen/vidgen.simulator.js'
import { type DocumentBody, documentPart, PARSE_PATH } from '../support/document-lab.js'
import { startParts } from '../support/gateway-process.js'
import { CHAT_PATH, chatText, SPEECH_PATH, speechText } from '../support/gateway.js'
import { MESSAGES } from '../support/m1-gateway.js'
import { p1Channel, UPSTREAM_KEY } from '../support/provider-gateways.js'
import { type HoldingProxy, startHoldingProxy } from '../support/proxies.js'
import { imagePath, IMGGEN_SECRET, VIDGEN_ACCESS, vidgenChannel } from '../support/task-gateways.js'
import {
  fieldPart,
  filePart,
  MULTIPART,
  multipartBytes,
  sha1,
  TRANSCRIPTIONS,
  wavOfSeconds,
} from '../support/upload-server.js'
import { type Envelope, type ShownTask, videoText } from '../support/video-caller.js'
import type { LoadKind } from './callers.js'

const JSON_TYPE = { 'content-type': 'application/json' }

/** About 320 KB. */
const RECORDING_SECONDS = 10
/** Behind the head of a WAV file. */
const SAMPLES_AT = 44

/** About 30 KB of CSV. */
const ROWS = 2000

/** A four-image task that is done: four upscales, four variations and another try. */
const BUTTONS = 9

/** An upload takes so long: some are under way at any time. */
const REST_MS = 1000

const parsed = (body: Buffer): unknown => JSON.parse(body.toString())

interface Completion {
  readonly choices: readonly { readonly message: { readonly content: string }; readonly finish_reason: string }[]
  readonly usage: { readonly total_tokens: number }
}

interface ShownImage {
  readonly id: string
  readonly prompt: string
  readonly status: string
  readonly buttons: readonly unknown[]
}

/** The simulators report their configuration. */
export const chats = (model = 'gpt-4o-mini'): LoadKind => ({
  name: 'chat',
  ask: (id) => ({
    path: CHAT_PATH,
    headers: JSON_TYPE,
    body: chatText(`This is ${id}.`, { model }),
    isWhole: (body) => {
      const { choices, usage } = parsed(body) as Completion
      const [{ message, finish_reason: reason } = { message: { content: '' }, finish_reason: '' }] = choices
      return message.content === `You said: This is ${id}.` && reason === 'stop' && usage.total_tokens > 0
    },
  }),
})

const messages = (model: string): LoadKind => ({
  name: 'messages',
  ask: (id) => ({
    path: MESSAGES,
    headers: { ...JSON_TYPE, 'anthropic-version': '2023-06-01' },
    body: JSON.stringify({ model, max_tokens: 100, messages: [{ role: 'user', content: `This is ${id}.` }] }),
    isWhole: (body) => {
      const answer = parsed(body) as { content: readonly { readonly text: string }[]; stop_reason: string }
      return answer.content[0]?.text === `You said: This is ${id}.` && answer.stop_reason === 'end_turn'
    },
  }),
})

/** Each recording is another one, and the transcript tells its checksum. */
const transcriptions: LoadKind = {
  name: 'transcription',
  ask: (id) => {
    const recording = wavOfSeconds(RECORDING_SECONDS)
    recording.write(id, SAMPLES_AT, 'latin1')
    const heard = `The audio has checksum ${sha1(recording).slice(0, 12)}. It lasts ${RECORDING_SECONDS}.00 seconds.`
    return {
      path: TRANSCRIPTIONS,
      headers: MULTIPART,
      body: multipartBytes([filePart(recording), fieldPart('model', 'whisper-1')]),
      restMs: REST_MS,
      isWhole: (body) => (parsed(body) as { text: string }).text === heard,
    }
  },
}

/** Each to the last byte. */
const speeches: LoadKind = {
  name: 'speech',
  ask: (id) => {
    const input = `This is ${id}. ${'The kettle is on the stove. '.repeat(2)}`
    return {
      path: SPEECH_PATH,
      headers: JSON_TYPE,
      body: speechText(input, { response_format: 'wav' }),
      isWhole: (body) => body.equals(Buffer.concat([...synthesizeSpeech(input, { format: 'wav', speed: 1 })])),
    }
  },
}

/** A table with all its rows. */
const documents: LoadKind = {
  name: 'document',
  ask: (id) => ({
    path: PARSE_PATH,
    headers: MULTIPART,
    body: multipartBytes([
      documentPart(`name,number\n${Array.from({ length: ROWS }, (_, row) => `${id},${row}\n`).join('')}`, 'a.csv'),
    ]),
    restMs: REST_MS,
    isWhole: (body) => {
      const { code, data } = parsed(body) as DocumentBody
      return code === 0 && data.markdown.split(`| ${id} |`).length === ROWS + 1
    },
  }),
}

/** Notes the id of each task that was created, by the load's own one. */
const videos = (created: Map<string, string>): LoadKind => ({
  name: 'video',
  ask: (id) => ({
    path: '/vidgen/v1/videos/text2video',
    headers: JSON_TYPE,
    body: videoText('text2video', { external_task_id: id }),
    isWhole: (body) => {
      const { code, data } = parsed(body) as Envelope<ShownTask>
      created.set(id, data.task_id)
      return code === 0 && data.task_id !== '' && data.task_info?.external_task_id === id
    },
  }),
})

/** A picture that is done is looked at. */
const images = (simulator: ImggenSimulator): LoadKind => ({
  name: 'image',
  ask: (id) => {
    const task = simulator.submit(`A kettle, for ${id}`)
    simulator.finish(task)
    return {
      method: 'GET',
      path: imagePath(task),
      isWhole: (body) => {
        const shown = parsed(body) as ShownImage
        return (
          shown.id === task &&
          shown.prompt.endsWith(id) &&
          shown.status === 'SUCCESS' &&
          shown.buttons.length === BUTTONS
        )
      },
    }
  },
})

const CHAT_MODEL = 'gpt-4.1-mini'
const MESSAGES_MODEL = 'claude-haiku-4-5'

/** Upstreams for every kind of request whose answer comes as a whole. Documents need none. */
export interface LoadUpstreams {
  readonly channels: readonly object[]
  readonly kinds: readonly LoadKind[]
  /** The tasks acknowledged to callers, by external id. */
  readonly created: ReadonlyMap<string, string>
  readonly videos: VidgenSimulator
  /** Holds the responses of kind `messages` back while configured to. */
  readonly messagesDoor: HoldingProxy
  readonly violations: () => readonly string[]
  /**
   * Every other request takes so long from now on, until the returned function is called: with the requests that each
   * upstream remembers, their violations are forgotten then.
   */
  slowDown(durationMs: number): () => void
  close(): Promise<void>
}

export function startLoadUpstreams(): Promise<LoadUpstreams> {
  return startParts(async (closedAtLast) => {
    const p1 = closedAtLast(await startP1Simulator({ apiKey: UPSTREAM_KEY }))
    const m1 = closedAtLast(await startM1Simulator({ apiKey: UPSTREAM_KEY }))
    const messagesDoor = closedAtLast(await startHoldingProxy(m1.port))
    const vidgen = closedAtLast(await startVidgenSimulator(VIDGEN_ACCESS, { taskMs: 'manual' }))
    const imggen = closedAtLast(await startImggenSimulator({ apiKey: IMGGEN_SECRET, stepMs: 'manual' }))
    const simulators: readonly Simulator[] = [p1, m1, vidgen, imggen]
    const created = new Map<string, string>()
    return {
      channels: [
        p1Channel('load-p1', p1, { models: [CHAT_MODEL, 'whisper-1', 'tts-1'] }),
        {
          id: 'load-m1',
          provider: 'm1',
          baseUrl: messagesDoor.url,
          credentials: UPSTREAM_KEY,
          models: [MESSAGES_MODEL],
        },
        vidgenChannel('load-videos', vidgen),
        { id: 'load-images', provider: 'imggen', baseUrl: imggen.url, credentials: IMGGEN_SECRET },
      ],
      kinds: kindsOf(created, imggen),
      created,
      videos: vidgen,
      messagesDoor,
      violations: () => simulators.flatMap(({ violations }) => violations),
      slowDown: (durationMs) => {
        const stops = simulators.map((simulator) => slowDown(simulator, durationMs))
        return () => {
          for (const stop of stops) stop()
        }
      },
    }
  })
}

const kindsOf = (created: Map<string, string>, imggen: ImggenSimulator): readonly LoadKind[] => [
  chats(CHAT_MODEL),
  transcriptions,
  speeches,
  documents,
  messages(MESSAGES_MODEL),
  videos(created),
  images(imggen),
]

function slowDown(simulator: Simulator, durationMs: number): () => void {
  let count = 0
  const slow = (): void => {
    if (++count % 2 === 0) simulator.queueFault({ kind: 'delay', ms: durationMs })
  }
  simulator.on('request', slow)
  return () => {
    simulator.off('request', slow).reset()
  }
}
