import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { form, TRANSCRIPTIONS, TRANSLATIONS, upload, wavOf, wavOfSeconds } from '../support/audio-uploads.js'
import { CHAT_PATH, chatText, SPEECH_PATH, speechText } from '../support/chat-bodies.js'
import { PARSE_PATH } from '../support/document-lab.js'
import { type DocumentTarget, PAGE_HEAD, startDocumentTarget } from '../support/document-target.js'
import { eventually } from '../support/eventually.js'
import { MESSAGES, messageText } from '../support/m1-gateway.js'
import type { RawRequest } from '../support/raw-http.js'
import { FORM_HEAD, formBytes, openUpload, type SlowUpload } from '../support/slow-uploads.js'
import { STORE_START_MS } from '../support/stores.js'
import { recordsOf, recordWhere, type ShownRecord, startUsageLab, type UsageLab } from '../support/usage-lab.js'

const MEGABYTE = 1_000_000
const PIECE_BYTES = 65_536

let target: DocumentTarget
let lab: UsageLab

beforeAll(async () => {
  target = await startDocumentTarget()
  lab = await startUsageLab({ ssrf: { allow: [`127.0.0.1:${target.port}`] } })
}, STORE_START_MS)
afterEach(() => {
  lab.p1.reset()
  lab.m1.reset()
})
afterAll(async () => {
  await lab.close()
  await target.close()
})

let count = 0

/** A caller whose request can be found again. */
interface Caller {
  readonly requestId: string
  readonly connection: SlowUpload
}

/** Sends the head of a request, and of its body of this length as much as is given. */
async function begin(path: string, bytes: number, body: Buffer, headers: Record<string, string> = {}): Promise<Caller> {
  const requestId = `left-${++count}`
  const connection = await openUpload(lab.gateway.url, bytes, { 'x-request-id': requestId, ...headers }, path)
  for (let at = 0; at < body.length; at += PIECE_BYTES) await connection.send(body.subarray(at, at + PIECE_BYTES))
  return { requestId, connection }
}

const json = { 'content-type': 'application/json' }

function send({ path, body = '', headers }: RawRequest): Promise<Caller> {
  const bytes = Buffer.from(body)
  return begin(path, bytes.length, bytes, { ...json, ...(headers as Record<string, string> | undefined) })
}

/** Lets the caller leave, and gives the one record that is there afterwards. */
async function leave({ requestId, connection }: Caller): Promise<ShownRecord> {
  connection.socket.destroy()
  const isTheirs = ({ request_id: id }: ShownRecord): boolean => id === requestId
  await recordWhere(lab.gateway, isTheirs)
  // Whatever else that call might leave would be there with the next one's.
  await lab.recorded({ path: CHAT_PATH, body: chatText('Hello') })
  const records = (await recordsOf(lab.gateway)).filter(isTheirs)
  expect(records).toHaveLength(1)
  return records[0] as ShownRecord
}

const NOTHING = { outcome: 'caller_left', units: {}, reported: null, estimated: null, pricing: 'free', cost: '0' }

describe('A caller who leaves in the middle of the request', () => {
  it.each([
    ['a recording', TRANSCRIPTIONS, 50_000, 20_000],
    ['a recording that has gone to disk', TRANSCRIPTIONS, 8 * MEGABYTE, 4 * MEGABYTE],
    ['a recording to be translated', TRANSLATIONS, 50_000, 20_000],
  ])('leaves one record, which is free: %s', async (_what, path, bytes, sentBytes) => {
    const sent = Buffer.concat([FORM_HEAD, wavOf(sentBytes)])
    expect(await leave(await begin(path, formBytes(bytes), sent))).toMatchObject({ ...NOTHING, route: path })
    expect(lab.p1.requests.filter(({ path: asked }) => asked === path)).toEqual([])
  })

  it.each([
    ['a document', PARSE_PATH, { 'content-type': 'text/html' }],
    ['a question', CHAT_PATH, json],
    ['a message', MESSAGES, json],
    ['a text to be spoken', SPEECH_PATH, json],
  ])('leaves one record, which is free: %s', async (_what, path, headers) => {
    const caller = await begin(path, MEGABYTE, Buffer.from('{"model":"gpt-4o-mini",'), headers)
    expect(await leave(caller)).toMatchObject({ ...NOTHING, route: path, channel: null })
  })
})

describe('A caller who leaves before the upstream has answered', () => {
  it.each<[string, RawRequest]>([
    ['chat', { path: CHAT_PATH, body: chatText('#hang') }],
    ['a chat stream', { path: CHAT_PATH, body: chatText('#hang', { stream: true }) }],
    ['speech', { path: SPEECH_PATH, body: speechText('#hang') }],
    [
      'a recording',
      upload(
        form([
          ['model', 'whisper-1'],
          ['prompt', '#hang'],
        ]),
      ),
    ],
    [
      'a recording of which events are wanted',
      upload(
        form([
          ['model', 'gpt-4o-transcribe'],
          ['prompt', '#hang'],
          ['stream', 'true'],
        ]),
      ),
    ],
  ])('leaves one record, which is free: %s', async (_what, request) => {
    const arrived = lab.p1.nextRequest()
    const aborted = lab.p1.nextAbort()
    const caller = await send(request)
    await arrived
    expect(await leave(caller)).toMatchObject({ ...NOTHING, route: request.path, channel: 'p1-main' })
    await aborted
  })

  it('leaves one record, which is free: messages', async () => {
    const arrived = lab.m1.nextRequest()
    const caller = await send({ path: MESSAGES, body: messageText('#hang') })
    await arrived
    expect(await leave(caller)).toMatchObject({ ...NOTHING, route: MESSAGES, channel: 'm1-main' })
  })

  it.each([
    ['before its server answers', () => undefined],
    ['in the middle of it', (socket) => void socket.write(`${PAGE_HEAD}content-length: 99\r\n\r\n<html>`)],
  ] as const satisfies readonly (readonly [string, Parameters<DocumentTarget['answers']['set']>[1]])[])(
    'leaves one record, which is free: a document, %s',
    async (_when, answer) => {
      target.reset()
      target.answers.set('/left', answer)
      const caller = await send({ path: PARSE_PATH, body: JSON.stringify({ url: target.url('/left') }) })
      await eventually(() => target.heads.length === 1)
      expect(await leave(caller)).toMatchObject({ ...NOTHING, route: PARSE_PATH, model: 'documents', channel: null })
      await eventually(() => target.sockets.size === 0)
    },
  )
})

describe('A caller who leaves in the middle of the answer', () => {
  it('has paid for all of a recording, and for the pieces of its transcript that came', async () => {
    const held = upload(
      form(
        [
          ['model', 'gpt-4o-transcribe'],
          ['stream', 'true'],
        ],
        wavOfSeconds(6),
      ),
    )
    lab.p1.queueFault('stall')
    const caller = await send(held)
    await eventually(() => caller.connection.answer().split('transcript.text.delta').length > 4)
    expect(await leave(caller)).toMatchObject({
      outcome: 'caller_left',
      route: TRANSCRIPTIONS,
      model: 'gpt-4o-transcribe',
      channel: 'p1-main',
      units: { prompt_tokens: 100, audio_input_tokens: 100, completion_tokens: 4 },
      reported: null,
      estimated: { input_tokens: 100, output_tokens: 4, total_tokens: 104 },
      pricing: 'priced',
    })
  })
})

describe('An upstream that breaks off before the caller has a byte', () => {
  it.each<[string, RawRequest]>([
    ['chat', { path: CHAT_PATH, body: chatText('Hello') }],
    ['a recording', upload(form([['model', 'gpt-4o-transcribe']]))],
  ])('leaves one record, which is free: %s', async (_what, request) => {
    lab.p1.queueFault('cut')
    const { record } = await lab.recorded(request)
    expect(record).toMatchObject({ ...NOTHING, outcome: 'upstream_failed', route: request.path, channel: 'p1-main' })
  })
})
