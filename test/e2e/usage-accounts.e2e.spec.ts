import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import type { UsageRecord } from '../../src/core/usage-record.js'
import { PARSE_PATH } from '../support/document-lab.js'
import { type DocumentTarget, PAGE_HEAD, startDocumentTarget } from '../support/document-stand-ins.js'
import { eventually, seededRandom } from '../support/eventually.js'
import { CHAT_PATH, chatText, type RawRequest, SPEECH_PATH, speechText, TEST_KEY } from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import { MESSAGES, messageText } from '../support/m1-gateway.js'
import { RealtimeProbe } from '../support/realtime-probe.js'
import { brokenTranscripts, failedCalls, leftCalls, servedCalls } from '../support/run-calls.js'
import { FORM_HEAD, formBytes, openUpload, type SlowUpload } from '../support/slow-uploads.js'
import { askForImage, imagePath } from '../support/task-gateways.js'
import { form, TRANSCRIPTIONS, TRANSLATIONS, upload, wavOf, wavOfSeconds } from '../support/upload-server.js'
import {
  describeAllRecords,
  recordsOf,
  recordWhere,
  type ShownRecord,
  startUsageLab,
  type UsageLab,
} from '../support/usage-lab.js'
import { accountOf, answersOf, expectedCost, recordedCost, startUsageRun, type UsageRun } from '../support/usage-run.js'
import { VideoCaller } from '../support/video-caller.js'

describe('usage ledger', () => {
  const ROUNDS = 8
  const RUN_MS = 240_000

  let lab: UsageRun

  shareLab(async () => (lab = await startUsageRun()))

  /** Makes every kind of call, and gives the records that must come of it. */
  async function round(draw: (most: number) => number): Promise<readonly string[]> {
    const first = brokenTranscripts(lab, draw)
    for (const { run } of first) await run()
    const together = [...servedCalls(lab, draw), ...leftCalls(lab, draw), ...failedCalls(lab, draw)]
    await Promise.all(together.map(({ run }) => run()))
    return [...first, ...together].flatMap(({ leaves }) => leaves)
  }

  /** By channel and model; units of which there was nothing are left out. */
  async function accounts(): Promise<unknown> {
    const byChannel: Record<string, Record<string, unknown>> = {}
    for (const { channelId, model, units } of await lab.sums()) {
      const used = Object.fromEntries(Object.entries(units).filter(([, quantity]) => quantity > 0))
      byChannel[channelId ?? ''] = { ...byChannel[channelId ?? ''], [model ?? '']: used }
    }
    return byChannel
  }

  /** What must have been counted of a stream: its simulator sends a token in each piece, and none of those it keeps to itself. */
  function shownTokens({ route, units }: UsageRecord): object {
    const shown = (units.completionTokens ?? 0) - (units.reasoningTokens ?? 0)
    return route === CHAT_PATH ? { completion_tokens: shown } : { output_tokens: shown }
  }

  describe('The accounts of a mixed run', () => {
    const expected: string[] = []

    beforeAll(async () => {
      const random = seededRandom(20_261_122)
      /** Whole numbers from 1 to `most`, the same in every run. */
      const draw = (most: number): number => 1 + Math.floor(random() * most)
      for (let count = 0; count < ROUNDS; count++) expected.push(...(await round(draw)))
      await lab.idle()
      await eventually(async () => (await lab.sums()).reduce((sum, each) => sum + each.records, 0) >= expected.length)
    }, RUN_MS)

    it('hold one record for each call, answer and task, with its outcome, and whose figures these are', async () => {
      expect((await lab.records()).map(accountOf).sort()).toEqual([...expected].sort())
    })

    it('say what the upstreams say they served, to the unit', async () => {
      expect(await accounts()).toEqual(lab.served())
      // Errors that cancel each other would be seen here: one caller too many, another too few.
      const used = (await lab.records()).filter(({ units }) => Object.values(units).some((quantity) => quantity > 0))
      expect(answersOf(used)).toEqual(lab.answers())
    })

    it('hold what was counted of the streams that came to their end beside what their upstreams say', async () => {
      const streams = (await lab.records()).filter(
        ({ route, reported, estimated }) =>
          (route === CHAT_PATH || route === MESSAGES) && reported !== null && estimated !== null,
      )
      expect(streams).toHaveLength(4 * ROUNDS)
      // Thoughts of messages are shown, in pieces that are no tokens.
      const plain = streams.filter(({ route, units }) => route === CHAT_PATH || (units.reasoningTokens ?? 0) === 0)
      expect(plain).toHaveLength(3 * ROUNDS)
      expect(plain.map(({ estimated }) => JSON.parse(estimated ?? '') as unknown)).toEqual(plain.map(shownTokens))
    })

    it('leave nothing unpriced, and cost what the table says', async () => {
      const records = await lab.records()
      expect(records.filter(({ pricing }) => pricing === 'unpriced')).toEqual([])
      expect(records.filter((record) => recordedCost(record) !== expectedCost(record, lab.prices))).toEqual([])
      const thought = records.filter(({ units }) => (units.reasoningTokens ?? 0) > 0)
      expect(thought).toHaveLength(3 * ROUNDS)
    })
  })
})

describe('usage accounts', () => {
  const MEGABYTE = 1_000_000
  const PIECE_BYTES = 65_536

  let target: DocumentTarget
  let lab: UsageLab

  beforeAll(async () => {
    target = await startDocumentTarget()
  })
  shareLab(async () => (lab = await startUsageLab({ ssrf: { allow: [`127.0.0.1:${target.port}`] } })))
  afterAll(() => target.close())
  afterEach(() => {
    lab.p1.reset()
    lab.m1.reset()
  })

  let count = 0

  /** A caller whose request can be found again. */
  interface Caller {
    readonly requestId: string
    readonly connection: SlowUpload
  }

  /** Sends the head of a request, and of its body of this length as much as is given. */
  async function begin(
    path: string,
    bytes: number,
    body: Buffer,
    headers: Record<string, string> = {},
  ): Promise<Caller> {
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
      ['a recording', upload(form({ model: 'whisper-1', prompt: '#hang' }))],
      [
        'a recording of which events are wanted',
        upload(form({ model: 'gpt-4o-transcribe', prompt: '#hang', stream: 'true' })),
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
      const held = upload(form({ model: 'gpt-4o-transcribe', stream: 'true' }, wavOfSeconds(6)))
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
      ['a recording', upload(form({ model: 'gpt-4o-transcribe' }))],
    ])('leaves one record, which is free: %s', async (_what, request) => {
      lab.p1.queueFault('cut')
      const { record } = await lab.recorded(request)
      expect(record).toMatchObject({ ...NOTHING, outcome: 'upstream_failed', route: request.path, channel: 'p1-main' })
    })
  })
})

describe('usage sessions', () => {
  let lab: UsageLab
  shareLab(async () => (lab = await startUsageLab()))

  describe('A realtime session', () => {
    it('is recorded once for each answer, and once by itself without units', async () => {
      const requestId = 'session-1'
      const probe = await RealtimeProbe.open({
        url: lab.gateway.url.replace('http', 'ws'),
        key: TEST_KEY,
        model: 'gpt-realtime',
        headers: { 'x-request-id': requestId },
      })
      await probe.next('session.created')
      const answers: Record<string, unknown>[] = []
      for (let turn = 0; turn < 2; turn++) {
        probe.send({
          type: 'conversation.item.create',
          item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hello' }] },
        })
        probe.send({ type: 'response.create' })
        const { response } = (await probe.next('response.done')) as { response: { usage: Record<string, unknown> } }
        answers.push(response.usage)
      }
      probe.socket.close()
      await probe.closed
      await recordWhere(lab.gateway, ({ request_id: id, kind }) => id === requestId && kind === 'request')
      const records = (await recordsOf(lab.gateway)).filter(({ request_id: id }) => id === requestId)
      const responses = records.filter(({ kind }) => kind === 'response')
      expect(responses.map(({ reported }) => reported)).toEqual([...answers].reverse())
      for (const record of responses) {
        expect(record).toMatchObject({
          route: '/v1/realtime',
          model: 'gpt-realtime',
          channel: 'p1-main',
          pricing: 'priced',
        })
        expect(record.units['prompt_tokens']).toBe(record.reported?.['input_tokens'])
      }
      expect(records.filter(({ kind }) => kind === 'request')).toMatchObject([
        { units: {}, pricing: 'free', outcome: 'ok' },
      ])
      expect(records).toHaveLength(3)
    })
  })

  describe('A task', () => {
    it('is charged after its success, once, for any number of readers', async () => {
      const caller = new VideoCaller(lab.gateway)
      const id = await caller.created()
      const create = await recordWhere(lab.gateway, ({ route, kind }) => route === caller.path && kind === 'request')
      expect(create).toMatchObject({ outcome: 'ok', units: {}, pricing: 'free', channel: 'vidgen-main' })
      lab.vidgen.settle(id, 'succeed')
      const isEnd = ({ kind, route }: ShownRecord): boolean => kind === 'task' && route === caller.path
      expect(await recordWhere(lab.gateway, isEnd)).toMatchObject({
        request_id: null,
        model: 'vidgen-v1',
        channel: 'vidgen-main',
        outcome: 'ok',
        units: { videos: 1 },
        reported: { videos: 1, final_unit_deduction: 2 },
        cost: '0.35',
      })
      for (let time = 0; time < 3; time++) await caller.read(id)
      expect((await recordsOf(lab.gateway)).filter(isEnd)).toHaveLength(1)
    })

    it('that has failed is recorded and free', async () => {
      const caller = new VideoCaller(lab.gateway, TEST_KEY, 'multi-image2video')
      lab.vidgen.settle(await caller.created(), 'failed')
      const record = await recordWhere(lab.gateway, ({ kind, route }) => kind === 'task' && route === caller.path)
      expect(record).toMatchObject({ outcome: 'upstream_failed', units: { videos: 0 }, pricing: 'free', cost: '0' })
    })

    it('of images is counted when it is first seen to have ended, and not again', async () => {
      const id = '1750000000000777'
      lab.imggen.submit('a red kite', { id })
      await askForImage(lab.gateway, imagePath(id))
      lab.imggen.finish(id)
      for (let time = 0; time < 3; time++) await askForImage(lab.gateway, imagePath(id))
      const isImage = ({ model }: ShownRecord): boolean => model === 'images'
      expect(await recordWhere(lab.gateway, isImage)).toMatchObject({
        units: { images: 1 },
        cost: '0.05',
        outcome: 'ok',
      })
      expect((await recordsOf(lab.gateway)).filter(isImage)).toHaveLength(1)
    })
  })

  describeAllRecords(() => lab, 8)
})
