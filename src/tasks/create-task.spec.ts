import { describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
import { failureOf } from '../../test/support/failures.js'
import { CALLBACK_URL, callOf, taskLab, TEAM_A, TEAM_B, videoChannel } from '../../test/support/task-lab.js'
import { callerLeft } from '../core/request-context.js'

const dataOf = (body: string): unknown => (JSON.parse(body) as { data: unknown }).data

describe('A create', () => {
  it('is answered with the upstreams object under the callers own external id', async () => {
    const lab = taskLab()
    const call = callOf()
    const answer = await lab.engine.create(lab.order({ externalTaskId: 'order-1' }), call)
    expect(answer).toEqual({
      status: 200,
      body:
        `{"code":0,"message":"SUCCEED","request_id":"${call.requestId}","data":` +
        '{"task_id":"830000","task_status":"submitted","task_info":{"external_task_id":"order-1"},' +
        '"seed":12345678901234567890,"weight":1.0,"unheard_of":[null],' +
        '"created_at":1750000000000,"updated_at":1750000000000}}',
      replayed: false,
    })
    expect(lab.upstream.creates).toEqual([
      { channelId: 'main', externalId: expect.stringMatching(/^[0-9a-f]{12}\.order-1$/) as unknown },
    ])
  })

  it('without an external id gives the upstream one all the same, and shows none', async () => {
    const lab = taskLab()
    const answer = await lab.engine.create(lab.order(), callOf())
    expect(dataOf(answer.body)).toMatchObject({ task_info: { external_task_id: '' } })
    expect(lab.upstream.creates[0]?.externalId).toMatch(/^[0-9a-f]{12}\.[0-9a-f]{32}$/)
  })

  it('is recorded before the upstream is asked: without a store nothing is sent', async () => {
    const lab = taskLab()
    lab.store.setReachable(false)
    expect((await failureOf(lab.engine.create(lab.order(), callOf()))).kind).toBe('overloaded')
    expect(lab.upstream.creates).toEqual([])
  })

  it('is in the store while the upstream is at work', async () => {
    const lab = taskLab()
    const release = lab.upstream.holdCreates()
    const create = lab.engine.create(lab.order(), callOf())
    await eventually(() => lab.upstream.creates.length === 1)
    expect(await lab.store.tasks.countByState()).toEqual({ creating: 1 })
    release()
    await create
    expect(await lab.store.tasks.countByState()).toEqual({ submitted: 1 })
  })

  it('of fifty at once with one external id is made once; the others are told which field', async () => {
    const lab = taskLab()
    const release = lab.upstream.holdCreates()
    const creates = Array.from({ length: 50 }, () =>
      lab.engine.create(lab.order({ externalTaskId: 'order-1' }), callOf()),
    )
    const outcomes = Promise.allSettled(creates)
    await eventually(() => lab.upstream.creates.length > 0)
    release()
    const refused = (await outcomes).flatMap((outcome) =>
      outcome.status === 'rejected' ? [outcome.reason as unknown] : [],
    )
    expect(refused).toHaveLength(49)
    for (const error of refused)
      expect(error).toMatchObject({ kind: 'conflict', details: { param: 'external_task_id' } })
    expect(lab.upstream.creates).toHaveLength(1)
  })

  it('of another caller may have the same external id', async () => {
    const lab = taskLab()
    await lab.engine.create(lab.order({ externalTaskId: 'order-1' }), callOf(TEAM_A))
    await lab.engine.create(lab.order({ externalTaskId: 'order-1' }, TEAM_B), callOf(TEAM_B))
    expect(new Set(lab.upstream.creates.map(({ externalId }) => externalId)).size).toBe(2)
  })

  it('tells the upstream an address of the gateway, never the callers', async () => {
    const lab = taskLab({ sections: { server: { publicUrl: 'https://gateway.example' } } })
    await lab.engine.create(lab.order({ callbackUrl: CALLBACK_URL }), callOf())
    expect(lab.upstream.creates[0]?.callbackUrl).toMatch(/^https:\/\/gateway\.example\/vidgen\/callbacks\/[\w-]{32}$/)
  })

  it('with a callback address that is not allowed is refused before anything is sent or recorded', async () => {
    const lab = taskLab()
    const create = lab.engine.create(lab.order({ callbackUrl: 'http://127.0.0.1:10/hook' }), callOf())
    expect((await failureOf(create)).details).toMatchObject({ param: 'callback_url', code: 'url_not_allowed' })
    expect([lab.upstream.creates, await lab.store.tasks.countByState()]).toEqual([[], {}])
  })

  it('whose answer is the end is announced as well, as nothing follows it', async () => {
    const lab = taskLab()
    lab.upstream.firstStatus = 'failed'
    const { body } = await lab.engine.create(lab.order({ callbackUrl: CALLBACK_URL, externalTaskId: 'o' }), callOf())
    const task = await lab.engine.find('text2video', 'o', callOf())
    const deliveries = task === undefined ? [] : await lab.engine.deliveries(task)
    expect(deliveries.map((delivery) => JSON.parse(delivery.body) as unknown)).toEqual([dataOf(body)])
    expect(lab.wakes()).toBe(1)
  })
})

describe('A create with an upstream key of the callers own', () => {
  const OWN = { keyId: 'caller', bearer: 'ak|sk' }
  const CHANNELS = [videoChannel('own', { credentials: 'caller' })]

  it('is made, but without callbacks, as nobody else can follow it', async () => {
    const lab = taskLab({ channels: CHANNELS, sections: { server: { publicUrl: 'https://gateway.example' } } })
    const refused = lab.engine.create(lab.order({ callbackUrl: CALLBACK_URL }, OWN), callOf(OWN))
    expect((await failureOf(refused)).details).toMatchObject({ param: 'callback_url', code: 'unsupported_parameter' })
    expect(await lab.store.tasks.countByState()).toEqual({})
    await lab.engine.create(lab.order({}, OWN), callOf(OWN))
    expect(lab.upstream.creates).toEqual([{ channelId: 'own', externalId: expect.any(String) as unknown }])
  })
})

describe('A caller who leaves', () => {
  it('before the upstream is asked leaves nothing behind', async () => {
    const lab = taskLab()
    const call = callOf()
    call.departure.announce()
    expect((await failureOf(lab.engine.create(lab.order(), call))).kind).toBe('caller_left')
    expect([lab.upstream.creates, await lab.store.tasks.countByState()]).toEqual([[], {}])
  })
})

describe('A shutdown', () => {
  it('waits until the last create has written down what came of it', async () => {
    const lab = taskLab()
    lab.upstream.createFaults.push({ when: 'after', error: callerLeft() })
    const release = lab.upstream.holdCreates()
    const create = failureOf(lab.engine.create(lab.order(), callOf()))
    await eventually(() => lab.upstream.creates.length === 1)
    const settled = lab.creation.settled()
    release()
    await settled
    expect(await lab.store.tasks.countByState()).toEqual({ unknown: 1 })
    await create
  })
})
