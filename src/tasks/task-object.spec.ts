import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { isCallbackToken, newCallbackToken, upstreamExternalId, withCallersId } from './external-ids.js'
import { failedObject } from './task-object.js'
import { isUpstreamExternalId, type Task } from './task.js'

const TASK: Task = {
  id: 'f'.repeat(32),
  kind: 'text2video',
  ownerId: 'team-a',
  channelId: 'main',
  model: 'test-video',
  state: 'processing',
  upstreamExternalId: 'x',
  callbackToken: 't',
  nextPollAtMs: 0,
  polls: 0,
  misses: 0,
  createdAtMs: 1000,
  updatedAtMs: 1000,
  deadlineAtMs: 2000,
}

describe('The external id an upstream is given', () => {
  it('differs between owners and tasks, and shows the owner to nobody', () => {
    const ids = [
      upstreamExternalId('team-a', 'order-1', 't1'),
      upstreamExternalId('team-b', 'order-1', 't1'),
      upstreamExternalId('team-a', undefined, 't1'),
      upstreamExternalId('team-a', undefined, 't2'),
    ]
    expect(new Set(ids).size).toBe(4)
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{12}\.(order-1|t1|t2)$/)
    expect(ids.every(isUpstreamExternalId)).toBe(true)
    expect(['order-1', '831200000000000001', '0123456789a.x'].some(isUpstreamExternalId)).toBe(false)
  })

  it('is replaced in answers by the callers own, everything else staying as it was', () => {
    const ours = upstreamExternalId('team-a', 'order-1', 't1')
    const object = `{ "n":12345678901234567890, "f":1.0,"task_info" : {"external_task_id":"${ours}","again":"${ours}"}}`
    expect(withCallersId(object, ours, 'order-1')).toBe(
      '{ "n":12345678901234567890, "f":1.0,"task_info" : {"external_task_id":"order-1","again":"order-1"}}',
    )
    expect(withCallersId(object, ours, undefined)).toContain('"external_task_id":""')
  })

  it('may hold whatever a caller may choose', () => {
    const externalIds = fc.stringMatching(/^[A-Za-z0-9_.:-]{1,128}$/)
    fc.assert(
      fc.property(externalIds, (externalId) => {
        const ours = upstreamExternalId('team-a', externalId, 't1')
        const object = JSON.stringify({ task_info: { external_task_id: ours }, other: `${ours}x` })
        expect(JSON.parse(withCallersId(object, ours, externalId))).toEqual({
          task_info: { external_task_id: externalId },
          other: `${ours}x`,
        })
      }),
    )
  })
})

describe('A callback token', () => {
  it('is new each time, and nothing else is taken for one', () => {
    const tokens = Array.from({ length: 100 }, newCallbackToken)
    expect(new Set(tokens).size).toBe(100)
    expect(tokens.every(isCallbackToken)).toBe(true)
    for (const text of ['', 'a', `${'a'.repeat(31)}/`, 'a'.repeat(33), `${'a'.repeat(31)}%`]) {
      expect(isCallbackToken(text)).toBe(false)
    }
  })
})

describe('The object of a task that the gateway ends', () => {
  it('is the last one with the ending in it', () => {
    const object = '{"task_id":"8","task_status":"processing","big":12345678901234567890,"created_at":1000,"f":1.0}'
    expect(failedObject({ ...TASK, object, upstreamTaskId: '8' }, 'Too "late".', 1500)).toBe(
      '{"task_id":"8","task_status":"failed","big":12345678901234567890,"created_at":1000,"f":1.0,' +
        '"task_status_msg":"Too \\"late\\".","updated_at":1500}',
    )
  })

  it.each([undefined, '{"a":1,"a":2}', '[]', 'oops'])('is a new one when the last was %s', (object) => {
    const text = failedObject(object === undefined ? TASK : { ...TASK, object, upstreamTaskId: '8' }, 'Lost.', 1500)
    expect(JSON.parse(text)).toEqual({
      task_id: object === undefined ? TASK.id : '8',
      task_status: 'failed',
      task_status_msg: 'Lost.',
      task_info: { external_task_id: '' },
      created_at: 1000,
      updated_at: 1500,
    })
  })
})
