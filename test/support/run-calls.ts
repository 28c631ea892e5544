import { expect } from '@jest/globals'
import { form, TRANSCRIPTIONS, upload, wavOfSeconds } from './audio-uploads.js'
import { CHAT_PATH, chatText, SPEECH_PATH, speechText } from './chat-bodies.js'
import { leaveAnswer, loseAnswer } from './cut-turns.js'
import { MESSAGES, messageText } from './m1-gateway.js'
import { p2Text } from './p2-gateway.js'
import { p3Text } from './p3-gateway.js'
import { openRaw, type RawRequest, sendRaw } from './raw-http.js'
import type { RunCall } from './run-call.js'
import { P2_RUN_MODEL, type UsageRun } from './usage-run.js'

const REALTIME_ROUTE = '/v1/realtime'
const P2_MODEL_FIELD = { model: P2_RUN_MODEL }
const STREAM = { stream: true }
const ASKING = { stream: true, stream_options: { include_usage: true } }

/** Reads until the text so far is enough, and leaves. */
export async function leaveOnce(url: string, raw: RawRequest, isEnough: (text: string) => boolean): Promise<void> {
  const response = await openRaw(url, raw)
  let text = ''
  // Whoever stops reading here leaves.
  for await (const chunk of response) {
    text += (chunk as Buffer).toString('latin1')
    if (isEnough(text)) break
  }
}

/** More frames than so many have arrived. */
export const frames = (count: number) => (text: string) => text.split(/\r?\n\r?\n/).length > count
const anything = (text: string): boolean => text.length > 0

const speech = (body: string): RawRequest => ({ path: SPEECH_PATH, body })
const chat = (text: string, more: object = {}): RawRequest => ({ path: CHAT_PATH, body: chatText(text, more) })
const messages = (text: string, more: object = {}): RawRequest => ({ path: MESSAGES, body: messageText(text, more) })

/** Every kind of call whose caller leaves in the middle of the answer, with figures drawn. */
export function leftCalls({ gateway }: UsageRun, draw: (most: number) => number): readonly RunCall[] {
  const [words, held] = [draw(60), draw(20)]
  const text = `#chunks=50 #hold=${held}`
  const left = (raw: RawRequest, isEnough: (text: string) => boolean): RunCall => ({
    leaves: [`request ${raw.path} caller_left estimated`],
    run: () => leaveOnce(gateway.url, raw, isEnough),
  })
  return [
    left(chat(text, STREAM), frames(held)),
    left(chat(`日本 ${text}`, ASKING), frames(held)),
    left(messages(text, STREAM), frames(held)),
    left(speech(speechText('#bytes=4000000', { response_format: 'pcm' })), anything),
    left(speech(p2Text(`#slow ${'one '.repeat(words)}`, P2_MODEL_FIELD)), anything),
    left(speech(p3Text('#bytes=4000000 你', { response_format: 'pcm' })), anything),
    {
      leaves: [`request ${REALTIME_ROUTE} ok none`, `response ${REALTIME_ROUTE} caller_left estimated`],
      run: () => leaveAnswer(gateway, words),
    },
  ]
}

/** Every kind of call whose upstream fails, before its answer or in the middle of it. */
export function failedCalls({ gateway }: UsageRun, draw: (most: number) => number): readonly RunCall[] {
  const [words, chunks] = [draw(60), 8 + draw(20)]
  const said = 'one '.repeat(words)
  const failed = (figures: string, raw: RawRequest): RunCall => ({
    leaves: [`request ${raw.path} upstream_failed ${figures}`],
    run: () => sendRaw(gateway.url, raw),
  })
  return [
    failed('none', chat('#500')),
    failed('none', chat('#503', STREAM)),
    failed('none', messages('#529')),
    failed('none', speech(speechText('#500 Hello'))),
    failed('none', speech(p3Text('#500 你好'))),
    failed('estimated', chat(`#cut #chunks=${chunks}`, STREAM)),
    failed('estimated', chat(`#cleancut #chunks=${chunks}`, ASKING)),
    failed('estimated', chat(`#errorframe #chunks=${chunks}`, STREAM)),
    failed('estimated', messages(`#cut #chunks=${chunks}`, STREAM)),
    failed('estimated', messages(`#errorframe #chunks=${chunks}`, STREAM)),
    failed('estimated', speech(speechText(`#cut ${said}`))),
    failed('estimated', speech(p3Text(`#cut 你好 ${said}`))),
    // P2 charges for what it has spoken to its end.
    failed('none', speech(p2Text(`#cut ${'one '.repeat(20 + words)}`, P2_MODEL_FIELD))),
    {
      leaves: [
        `request ${REALTIME_ROUTE} upstream_failed none`,
        `response ${REALTIME_ROUTE} upstream_failed estimated`,
      ],
      run: () => loseAnswer(gateway, words),
    },
  ]
}

/** A file's fault cannot stand in its form, as that would be billed: one call after another, before all others. */
export function brokenTranscripts({ gateway, p1 }: UsageRun, draw: (most: number) => number): readonly RunCall[] {
  // Whole tokens at 1,000 a minute.
  const file = wavOfSeconds(3 * draw(9))
  const fields = (model: string) => [['model', model] as const, ['stream', 'true'] as const]
  const raw = upload(form(fields('gpt-4o-mini-transcribe'), file))
  const leaves = (how: string): Pick<RunCall, 'leaves'> => ({ leaves: [`request ${TRANSCRIPTIONS} ${how}`] })
  return [
    {
      ...leaves('caller_left estimated'),
      run: () => {
        p1.queueFault('stall')
        return leaveOnce(gateway.url, raw, frames(4))
      },
    },
    {
      ...leaves('upstream_failed estimated'),
      run: async () => {
        p1.queueFault('cut')
        expect((await sendRaw(gateway.url, raw)).text).toContain('transcript.text.delta')
      },
    },
    {
      ...leaves('upstream_failed none'),
      run: async () => {
        p1.queueFault('503')
        expect((await sendRaw(gateway.url, raw)).status).toBeGreaterThanOrEqual(500)
      },
    },
  ]
}
