import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { OpenAPIObject } from '@nestjs/swagger'
import { IMAGE_TASK_FIELDS } from '../../src/providers/imggen/imggen-task.js'
import { askForImage, imagePath, type ImggenGateway, startImggenGateway } from '../support/imggen-gateway.js'
import { lineAfter, listOf, sectionOf, tableOf } from '../support/specification.js'

interface Schema {
  readonly type?: string
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
}

/** "a (string, X shown), b, c (integer Unix milliseconds), d (array of {…})": name → what stands in the brackets. */
function fieldsOf(text: string): Map<string, string> {
  const found = new Map<string, string>()
  for (const [, names = '', about = ''] of text.matchAll(/(\w+(?:, \w+)*) \(([^)]*)\)/g)) {
    for (const name of listOf(names)) found.set(name, about)
  }
  return found
}

const FIELDS = fieldsOf(lineAfter('Image task', 'Fields:').split('. ')[0] ?? '')
const typesOf = (fields: Map<string, string>): Record<string, string> =>
  Object.fromEntries([...fields].map(([name, about]) => [name, /^\w+/.exec(about)?.[0] ?? '']))

let lab: ImggenGateway
let document: OpenAPIObject
beforeAll(async () => {
  lab = await startImggenGateway({ simulator: { variant: 'N' } })
  document = (await (await fetch(`${lab.gateway.url}/docs/openapi.json`)).json()) as OpenAPIObject
})
afterAll(() => lab.close())

/** What an operation is documented to answer with. */
function answerOf(question: string): Schema {
  const answer = document.paths[`/imggen/task/{id}/${question}`]?.get?.responses['200']
  if (answer === undefined || '$ref' in answer) throw new Error(`${question} is not documented`)
  return answer.content?.['application/json']?.schema as Schema
}

it('the image routes are those of the specification, beside the events', () => {
  const cell = tableOf('What the service does', 'Capability').find(({ Capability: name }) => name?.startsWith('Image'))
  expect(cell?.['Method and path']).toBe('GET /imggen/task/{id}/fetch, GET /imggen/task/{id}/image-seed')
  expect(Object.keys(document.paths).filter((path) => path.startsWith('/imggen'))).toEqual([
    '/imggen/task/{id}/fetch',
    '/imggen/task/{id}/image-seed',
    '/imggen/task/{id}/events',
  ])
})

describe('An image task', () => {
  it('has eighteen fields in the specification', () => {
    expect(FIELDS.size).toBe(18)
    expect([...FIELDS.keys()].slice(8, 12)).toEqual(['submitTime', 'startTime', 'finishTime', 'imageUrl'])
  })

  it('is completed with the fields of the specification, in its order and of its types', () => {
    expect(Object.entries(IMAGE_TASK_FIELDS)).toEqual(Object.entries(typesOf(FIELDS)))
  })

  it.each(['fetch', 'image-seed'])('is documented with the fields of the specification (%s)', (question) => {
    const { properties = {}, required } = answerOf(question)
    expect(Object.entries(properties).map(([name, { type }]) => [name, type])).toEqual(Object.entries(typesOf(FIELDS)))
    expect(required).toEqual([...FIELDS.keys()])
    const buttons = /^array of \{(.*)\}$/.exec(FIELDS.get('buttons') ?? '')?.[1] ?? ''
    expect(
      Object.entries(properties['buttons']?.items?.properties ?? {}).map(([n, { type }]) => `${n} ${type}`),
    ).toEqual(listOf(buttons))
    for (const [name] of (FIELDS.get('properties') ?? '').matchAll(/\w+(?= string)/g)) {
      expect(properties['properties']?.properties?.[name]).toMatchObject({ type: 'string' })
    }
  })

  it('has every field, of its type, whatever the upstream leaves out', async () => {
    const empty: Readonly<Record<string, unknown>> = { string: '', integer: 0, array: [], object: {} }
    const id = lab.simulator.submit('a kite')
    for (const step of ['NOT_START', 'SUBMITTED', 'IN_PROGRESS']) {
      const { body } = await askForImage(lab.gateway, imagePath(id))
      expect(body['status']).toBe(step)
      for (const [name, type] of Object.entries(typesOf(FIELDS))) {
        expect([name, Array.isArray(body[name]), typeof body[name]]).toEqual([
          name,
          type === 'array',
          typeof empty[type],
        ])
        if (type === 'integer') expect(Number.isSafeInteger(body[name])).toBe(true)
      }
      lab.simulator.advance(id)
    }
  })

  it('that has succeeded is as the specification says', async () => {
    expect(sectionOf('States and transitions')).toContain(
      'NOT_START and SUCCESS (a successful task also has progress 100 percent and an imageUrl)',
    )
    const id = lab.simulator.submit('a kite')
    lab.simulator.finish(id)
    expect((await askForImage(lab.gateway, imagePath(id))).body).toMatchObject({
      status: 'SUCCESS',
      progress: '100%',
      imageUrl: expect.stringMatching(/^http/),
    })
  })
})
