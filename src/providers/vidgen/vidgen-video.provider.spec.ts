import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { enveloped, json, TASK } from '../../../test/support/provider-labs.js'
import { newCall, targetOf } from '../../../test/support/raw-upstream.js'
import { CREATE_BODY, START_MS, startVidgenLab, TASK_ID, type VidgenLab } from '../../../test/support/vidgen-lab.js'
import { signedToken } from './vidgen-token.js'

const CREATED = json(200, enveloped(TASK))
const AUTHORIZATION = `Bearer ${signedToken('ak_demo', 'sk_demo', START_MS)}`

let lab: VidgenLab

beforeAll(async () => {
  lab = await startVidgenLab()
})
afterEach(() => {
  lab.reset()
})
afterAll(() => lab.close())

describe('A create', () => {
  it('sends the bytes it was given, under a signed token, and answers with the task', async () => {
    lab.server.answerWith(CREATED)
    const call = newCall()
    const [sent] = await lab.requestsOf(async () => {
      expect(await lab.create({ call })).toEqual({
        id: TASK_ID,
        status: 'submitted',
        object: TASK,
        updatedAtMs: 1750000000123,
        message: 'SUCCEED',
      })
    })
    expect(sent).toMatchObject({ method: 'POST', path: '/v1/videos/text2video', body: CREATE_BODY })
    expect(sent?.headers).toEqual({
      host: `127.0.0.1:${lab.server.port}`,
      connection: 'keep-alive',
      authorization: AUTHORIZATION,
      accept: 'application/json',
      'content-type': 'application/json',
      'content-length': String(CREATE_BODY.length),
    })
    expect(call.log).toMatchObject({ upstreamRequestId: 'CjMk-1', upstreamStatus: 200 })
  })

  it.each([
    ['multi-image2video', {}, '', '/v1/videos/multi-image2video'],
    ['text2video', { pathPrefix: '/relay/v1' }, '', '/relay/v1/videos/text2video'],
    ['text2video', { pathPrefix: '' }, '/base', '/base/videos/text2video'],
    ['multi-image2video', { unknownTasks: 'relay' }, '/base', '/base/v1/videos/multi-image2video'],
  ] as const)('of %s with the options %j behind %j goes to %s', async (kind, options, pathPrefix, path) => {
    lab.server.answerWith(CREATED)
    const target = targetOf(lab.server.port, { pathPrefix })
    const [sent] = await lab.requestsOf(() => lab.create({ options, target }, kind))
    expect(sent?.path).toBe(path)
  })

  it('sends a credential without a bar as it is', async () => {
    lab.server.answerWith(CREATED)
    const [sent] = await lab.requestsOf(() => lab.create({ credentials: 'sk-other-relay' }))
    expect(sent?.headers.authorization).toBe('Bearer sk-other-relay')
  })

  it('with a key of the caller’s that has its bar in the wrong place is not sent', async () => {
    const sent = await lab.requestsOf(() =>
      expect(lab.create({ credentials: 'a|b|c', callersKey: true })).rejects.toMatchObject({ kind: 'key_malformed' }),
    )
    expect(sent).toEqual([])
  })

  it.each([
    ['the id missing', '{"task_status":"submitted"}'],
    ['the status missing', '{"task_id":"1"}'],
    ['a status nobody knows', '{"task_id":"1","task_status":"queued"}'],
    ['no task at all', 'null'],
    ['a list', `[${TASK}]`],
  ])('that is answered with %s may have made a task', async (_what, data) => {
    lab.server.answerWith(json(200, enveloped(data)))
    await expect(lab.create()).rejects.toMatchObject({
      kind: 'upstream_failed',
      message: expect.stringContaining('may have made the task'),
      details: { attempt: { phase: 'sent', channelFault: true }, retryable: false },
    })
  })

  it('that made a task is not lost by the HTTP status, or by a code that is missing', async () => {
    lab.server.answerWith(json(500, enveloped(TASK)), json(201, `{"data":${TASK}}`))
    expect((await lab.create()).id).toBe(TASK_ID)
    expect((await lab.create()).id).toBe(TASK_ID)
  })
})

describe('A read', () => {
  it('sends no body and answers with the task as the upstream spelled it', async () => {
    const data = `{"task_id":831200000000000001, "task_status":"processing", "final_unit_deduction":2.50}`
    lab.server.answerWith(json(200, enveloped(data)))
    const [sent] = await lab.requestsOf(async () => {
      expect(await lab.read()).toEqual({ id: TASK_ID, status: 'processing', object: data, message: 'SUCCEED' })
    })
    expect(sent).toMatchObject({ method: 'GET', path: `/v1/videos/text2video/${TASK_ID}`, body: Buffer.alloc(0) })
    expect(sent?.headers).toEqual({
      host: `127.0.0.1:${lab.server.port}`,
      connection: 'keep-alive',
      authorization: AUTHORIZATION,
      accept: 'application/json',
    })
  })

  it.each([
    ['a/b?c#d', 'a%2Fb%3Fc%23d'],
    ['0123456789ab.order:7_x-y', '0123456789ab.order%3A7_x-y'],
    ['ü %', '%C3%BC%20%25'],
    ['../text2video', '..%2Ftext2video'],
  ])('of %j stays inside its path', async (id, encoded) => {
    lab.server.answerWith(json(200, enveloped(TASK)))
    const [sent] = await lab.requestsOf(() => lab.read(id))
    expect(sent?.path).toBe(`/v1/videos/text2video/${encoded}`)
  })

  it.each(['', '.', '..'])('of %j, which names another resource, is not sent', async (id) => {
    expect(
      await lab.requestsOf(async () => {
        expect(await lab.read(id)).toBeUndefined()
      }),
    ).toEqual([])
  })

  it.each([
    [404, enveloped('null', 1203, 'task not found')],
    [200, enveloped('null', 1203, 'task not found')],
    [404, '{"error":"nothing here"}'],
  ])('of a task that the upstream does not know (%i) finds nothing', async (status, body) => {
    lab.server.answerWith(json(status, body))
    expect(await lab.read()).toBeUndefined()
  })

  it('of a task whose answer leaves its id out is one of the id that was asked for', async () => {
    lab.server.answerWith(json(200, enveloped('{"task_status":"failed"}')))
    expect(await lab.read('my.external')).toMatchObject({ id: 'my.external', status: 'failed' })
  })

  it.each([
    ['no status', json(200, enveloped('{"task_id":"1"}'))],
    ['no task', json(200, enveloped('null'))],
    ['a page', json(404, '<html>')],
    ['another page', json(502, '<html>')],
  ])('that is answered with %s says nothing about the task, and may be repeated', async (_what, answer) => {
    lab.server.answerWith(answer)
    const failure = await lab.read().catch((error: unknown) => error)
    expect(failure).toMatchObject({ kind: 'upstream_failed', details: { attempt: { phase: 'answered' } } })
    expect(failure).not.toMatchObject({ details: { retryable: false } })
  })
})
