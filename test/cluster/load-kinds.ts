import { synthesizeSpeech } from '@multi-model-gateway/sandbox/audio/speech-synthesizer.js'
import type { ImggenSimulator } from '@multi-model-gateway/sandbox/imggen/imggen.simulator.js'
import { sha1, TRANSCRIPTIONS, wavOfSeconds } from '../support/audio-uploads.js'
import { CHAT_PATH, chatText, SPEECH_PATH, speechText } from '../support/chat-bodies.js'
import { type DocumentBody, documentPart, PARSE_PATH } from '../support/document-lab.js'
import { imagePath } from '../support/imggen-gateway.js'
import { MESSAGES } from '../support/m1-gateway.js'
import { fieldPart, filePart, MULTIPART, multipartBytes } from '../support/upload-server.js'
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

/** The simulators say what they were told. */
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

export const messages = (model: string): LoadKind => ({
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
export const transcriptions: LoadKind = {
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
export const speeches: LoadKind = {
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
export const documents: LoadKind = {
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
export const videos = (created: Map<string, string>): LoadKind => ({
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
export const images = (simulator: ImggenSimulator): LoadKind => ({
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
