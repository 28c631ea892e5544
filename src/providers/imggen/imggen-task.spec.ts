import { describe, expect, it } from '@jest/globals'
import { JsonBody } from '../../core/json-body.js'
import { IMAGE_TASK_FIELDS, imageTaskOf } from './imggen-task.js'

const taskOf = (text: string, seed?: string) => imageTaskOf(JsonBody.parse(Buffer.from(text)), '77', seed)
const EMPTY = { string: '', integer: 0, array: [], object: {} }

describe('A task object', () => {
  it('that is complete keeps every byte', () => {
    const values = { string: '"\\u00e9\\/"', integer: '1.0e3', array: '[ {"emoji": null} ]', object: '{ "n":1.50}' }
    const members = Object.entries(IMAGE_TASK_FIELDS).map(([name, type]) => `"${name}" : ${values[type]}`)
    const text = `{ ${[...members, '"shardId":9223372036854775807'].reverse().join(' ,\n')} }`
    expect(taskOf(text).object).toBe(text)
    expect(taskOf(` ${text}\r\n`).object).toBe(text)
  })

  it('with nothing but a status gets every other field, in the order of the specification', () => {
    const { object } = taskOf('{"status":"SUBMITTED"}')
    const names = Object.keys(IMAGE_TASK_FIELDS).filter((name) => name !== 'status')
    expect(Object.keys(JSON.parse(object) as object)).toEqual(['status', ...names])
  })

  it.each(Object.entries(IMAGE_TASK_FIELDS).filter(([name]) => name !== 'id' && name !== 'status'))(
    'without %s, or with null there, has an empty %s',
    (name, type) => {
      for (const text of ['{"id":"1","status":"SUCCESS"}', `{"id":"1","${name}":null,"status":"SUCCESS"}`]) {
        expect((JSON.parse(taskOf(text).object) as Record<string, unknown>)[name]).toEqual(EMPTY[type])
      }
    },
  )

  it.each(['{"status":"SUCCESS"}', '{"id":null,"status":"SUCCESS"}'])(
    'without an id has the one that was asked for: %s',
    (text) => {
      expect(taskOf(text).object).toContain('"id":"77"')
    },
  )

  it('keeps the places of what it mends', () => {
    expect(taskOf('{"id":"1", "startTime" : null , "x":[1.0], "status":null}').object).toMatch(
      /^\{"id":"1", "startTime" : 0 , "x":\[1\.0\], "status":"","action":"",/,
    )
  })

  it('has texts and numbers where they belong, whatever a relay makes of them', () => {
    const { object, progress } = taskOf(
      '{"id":17500000000001234567,"status":"IN_PROGRESS","progress":31,"submitTime":"1750000000000","startTime":"","buttons":"","properties":"","finishTime":"soon"}',
    )
    expect(object).toContain('"id":"17500000000001234567"')
    expect(object).toContain('"progress":"31","submitTime":1750000000000,"startTime":0,"buttons":[],"properties":{}')
    // What cannot be read is shown as it came.
    expect(object).toContain('"finishTime":"soon"')
    expect(progress).toBe('31')
  })

  it.each([
    ['NOT_START', false],
    ['SUBMITTED', false],
    ['MODAL', false],
    ['IN_PROGRESS', false],
    ['SUCCESS', true],
    ['FAILURE', true],
    ['CANCEL', true],
    ['LATER_WORD', false],
  ])('that is %s is at its end: %s', (status, isTerminal) => {
    expect(taskOf(JSON.stringify({ id: '1', status, progress: '', imageUrl: 'https://x/y' }))).toMatchObject({
      status,
      progress: '',
      imageUrl: 'https://x/y',
      isTerminal,
    })
  })
})

describe('A seed', () => {
  it('joins the other properties, which keep their text', () => {
    const { object } = taskOf('{"id":"1","properties":{ "nonce" :12345678901234567890, "flags":1.0 },"z":1}', '42"')
    expect(object).toContain('"properties":{ "nonce" :12345678901234567890, "flags":1.0,"seed":"42\\"" },"z":1')
  })

  it.each(['{"id":"1"}', '{"id":"1","properties":null}', '{"id":"1","properties":{}}', '{"id":"1","properties":[]}'])(
    'makes the properties where there are none: %s',
    (text) => {
      expect(JSON.parse(taskOf(text, '42').object)).toMatchObject({ properties: { seed: '42' } })
    },
  )

  it('takes the place of another', () => {
    expect(taskOf('{"id":"1","properties":{"seed":"1","a":2}}', '42').object).toContain('{"seed":"42","a":2}')
  })
})
