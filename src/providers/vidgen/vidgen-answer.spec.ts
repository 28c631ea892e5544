import { describe, expect, it } from '@jest/globals'
import type { UpstreamVideoTask } from '../video.contract.js'
import { readVidgenAnswer, taskIn } from './vidgen-answer.js'

const taskOf = (data: string, askedId?: string): UpstreamVideoTask | undefined =>
  taskIn(
    readVidgenAnswer({ status: 200, headers: {} }, Buffer.from(`{"code":0,"message":"SUCCEED","data":${data}}`)),
    askedId,
  )

describe('The task in an answer', () => {
  it('is kept as the upstream spelled it', () => {
    const data =
      '{ "task_id" : "831200000000000001",\n "task_status":"succeed", "created_at":1750000000000, "updated_at":1750000182000,' +
      ' "cost": 1.50, "big": 123456789012345678901, "word": "\\u00e9\\/é", "new": {"x": [1.0, 1e2]} }'
    expect(taskOf(data)).toEqual({
      id: '831200000000000001',
      status: 'succeed',
      object: data,
      updatedAtMs: 1750000182000,
      message: 'SUCCEED',
    })
  })

  it.each([
    ['"831200000000000001"', '831200000000000001'],
    ['831200000000000001', '831200000000000001'],
    ['12345678901234567890123', '12345678901234567890123'],
    ['"a.b:c_d-e/f?g"', 'a.b:c_d-e/f?g'],
    ['7', '7'],
  ])('has the id %s', (text, id) => {
    expect(taskOf(`{"task_id":${text},"task_status":"submitted"}`)?.id).toBe(id)
  })

  it.each([
    '',
    '"task_id":"",',
    '"task_id":null,',
    '"task_id":true,',
    '"task_id":1.5,',
    '"task_id":1e3,',
    '"task_id":{},',
  ])('without an id that can be asked for again (%s) is none, unless the id is known', (member) => {
    const data = `{${member}"task_status":"processing"}`
    expect(taskOf(data)).toBeUndefined()
    expect(taskOf(data, 'asked')).toMatchObject({ id: 'asked', status: 'processing', object: data })
  })

  it('has no id of unprintable characters, nor one without end', () => {
    for (const id of ['a b', 'a\u0000', 'é', 'x'.repeat(257)]) {
      expect(taskOf(JSON.stringify({ task_id: id, task_status: 'submitted' }))).toBeUndefined()
    }
    expect(taskOf(JSON.stringify({ task_id: 'x'.repeat(256), task_status: 'submitted' }))?.id).toHaveLength(256)
  })

  it.each(['submitted', 'processing', 'succeed', 'failed'])('may be %s', (status) => {
    expect(taskOf(`{"task_id":"1","task_status":"${status}"}`)?.status).toBe(status)
  })

  it.each(['"succeeded"', '"SUCCEED"', '""', 'null', '0', '["succeed"]'])('is none with the status %s', (status) => {
    expect(taskOf(`{"task_id":"1","task_status":${status}}`, 'asked')).toBeUndefined()
  })

  it.each([
    ['1750000182000', 1750000182000],
    ['"1750000182000"', 1750000182000],
    ['null', undefined],
    ['"yesterday"', undefined],
    ['1.5', undefined],
    ['9007199254740993', undefined],
    ['{}', undefined],
  ])('changed at %s, which is %s', (text, updatedAtMs) => {
    const task = taskOf(`{"task_id":"1","task_status":"failed","updated_at":${text}}`)
    expect(task?.updatedAtMs).toBe(updatedAtMs)
    expect(Object.hasOwn(task ?? {}, 'updatedAtMs')).toBe(updatedAtMs !== undefined)
  })

  it.each(['null', '[]', '"x"', '1', '{}', '[{"task_id":"1","task_status":"failed"}]'])('is not %s', (data) => {
    expect(taskOf(data)).toBeUndefined()
  })
})

describe('An answer', () => {
  const answer = (body: string | Buffer) => readVidgenAnswer({ status: 200, headers: {} }, Buffer.from(body))

  it('is read for what it holds', () => {
    expect(answer('{"code":1201,"message":"m","request_id":"r","data":null,"more":1}')).toEqual({
      httpStatus: 200,
      isReadable: true,
      code: 1201,
      message: 'm',
      requestId: 'r',
      data: 'null',
      retryAfterSeconds: undefined,
    })
    expect(answer('{"message":1,"request_id":"","code":"x"}')).toMatchObject({ isReadable: true, message: '' })
  })

  it.each(['', 'null', '[]', '"x"', '<html>', '{"code":0', '{"code":0,"code":1}', Buffer.from([0x7b, 0xff, 0x7d])])(
    'that is not one JSON object says nothing: %s',
    (body) => {
      expect(answer(body)).toMatchObject({ isReadable: false, code: undefined, data: undefined, message: '' })
    },
  )
})
