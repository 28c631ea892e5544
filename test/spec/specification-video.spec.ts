import 'reflect-metadata'
import { describe, expect, it } from '@jest/globals'
import { parseConfig } from '../../src/config/load-config.js'
import { DtoCheck } from '../../src/core/dto-check.js'
import { successEnvelope } from '../../src/dialects/task-answer.js'
import { CAMERA_AXES } from '../../src/video/camera-control.rule.js'
import { MAXIMUM_IMAGE_BYTES, MAXIMUM_IMAGE_RATIO, MINIMUM_IMAGE_PIXELS } from '../../src/video/image.rule.js'
import { MultiImageVideoDto } from '../../src/video/multi-image-video.dto.js'
import {
  ASPECT_RATIOS,
  MAXIMUM_IMAGES,
  MAXIMUM_PROMPT_CHARACTERS,
  MODES,
  MULTI_IMAGE_DURATIONS,
  TEXT_DURATIONS,
} from '../../src/video/video-field-rules.js'
import { DEFAULT_MODELS, MULTI_IMAGE_MODELS } from '../../src/video/video-models.js'
import { TextVideoDto } from '../../src/video/video.dto.js'
import { pngText } from '../support/images.js'
import { lineAfter, listOf, type Row, sectionOf, tableOf } from '../support/specification.js'

const MULTI_IMAGE = 'Video task (multi-image)'
const TEXT = 'Video task (text-to-video)'

/** The fields and defaults a DTO documents: the last word on what it checks, as one line declares both. */
function documented(dto: { readonly prototype: object }): Record<string, { required?: boolean; default?: unknown }> {
  const names = (Reflect.getMetadata('swagger/apiModelPropertiesArray', dto.prototype) as string[]).map((name) =>
    name.slice(1),
  )
  return Object.fromEntries(
    names.map((name) => [name, Reflect.getMetadata('swagger/apiModelProperties', dto.prototype, name) as object]),
  )
}

describe('a multi-image create', () => {
  const rows = tableOf(MULTI_IMAGE, 'Field')
  const row = (name: string): Row => rows.find(({ Field: field }) => field === name) ?? {}
  const fields = documented(MultiImageVideoDto)
  const good = { prompt: 'x', image_list: [{ image: pngText() }] }
  const check = new DtoCheck(MultiImageVideoDto)

  it('has the fields of the table, in its order', () => {
    expect(Object.keys(fields)).toEqual(rows.map(({ Field: field }) => field))
  })

  it('needs the required fields of the table and no others', () => {
    const required = rows.filter((each) => each['Required'] === 'yes').map(({ Field: field }) => field)
    expect(Object.keys(good).sort()).toEqual([...required].sort())
    expect(check.accepts(good)).toBe(true)
    for (const name of required) {
      expect(check.accepts(Object.fromEntries(Object.entries(good).filter(([field]) => field !== name)))).toBe(false)
    }
  })

  it('documents the defaults of the table', () => {
    const defaults = rows.filter((each) => each['Default'] !== '').map((each) => [each['Field'], each['Default']])
    const found = Object.entries(fields).flatMap(([name, field]) => ('default' in field ? [[name, field.default]] : []))
    expect(found).toEqual(defaults)
    expect(DEFAULT_MODELS['multi-image2video']).toBe(row('model_name')['Default'])
  })

  it('allows the values of the table', () => {
    const allowed = (name: string): string[] => listOf(/allowed:? (.*)$/.exec(row(name)['Notes'] ?? '')?.[1] ?? '')
    expect([...MULTI_IMAGE_MODELS]).toEqual(allowed('model_name'))
    expect([...MULTI_IMAGE_DURATIONS]).toEqual(allowed('duration'))
    expect([...ASPECT_RATIOS]).toEqual(allowed('aspect_ratio'))
    expect(row('mode')['Notes']).toMatch(new RegExp(`^${MODES[0]} .* or ${MODES[1]} `))
  })

  it('is refused with a value of another type, naming the field', async () => {
    const wrong = { string: true, 'array of {image: string}': 'x', 'object {enabled: boolean}': { enabled: 'x' } }
    for (const { Field: name = '', Type: type = '' } of rows) {
      expect(Object.keys(wrong)).toContain(type)
      const refusal = check.assert({ ...good, [name]: wrong[type as keyof typeof wrong] })
      await expect(refusal).rejects.toMatchObject({ details: { param: expect.stringMatching(new RegExp(`^${name}`)) } })
    }
  })

  it('has the limits of the table and of the list of limits', () => {
    const limits = new Map(tableOf('Limits', 'Limit').map((each) => [each['Limit'], each['Value']]))
    expect(limits.get('reference images')).toBe(`at most ${MAXIMUM_IMAGES}`)
    expect(limits.get('prompt and negative_prompt')).toBe(`at most ${MAXIMUM_PROMPT_CHARACTERS} characters each`)
    const { longer, shorter } = MAXIMUM_IMAGE_RATIO
    expect(limits.get('image size')).toBe(
      `at most ${MAXIMUM_IMAGE_BYTES / 1024 / 1024} MB, at least ${MINIMUM_IMAGE_PIXELS} px, aspect ratio 1:${longer / shorter} to ${longer / shorter}:1`,
    )
    expect(row('prompt')['Notes']).toBe(`at most ${MAXIMUM_PROMPT_CHARACTERS} characters`)
    expect(row('image_list')['Notes']).toContain(`up to ${MAXIMUM_IMAGES} entries`)
  })

  it('has images by the rules of the specification', () => {
    const rules = lineAfter(MULTI_IMAGE, 'Image rules:')
    expect(rules).toContain('raw string without any data: prefix; formats .jpg, .jpeg, .png; at most 10 MB')
    expect(check.accepts({ ...good, image_list: [{ image: `data:image/png;base64,${pngText()}` }] })).toBe(false)
    // Four of the largest images in Base64, and the rest of the body, must fit.
    const { imageBodyBytes } = parseConfig('{}', {}).limits
    expect(imageBodyBytes).toBeGreaterThan(Math.ceil(MAXIMUM_IMAGE_BYTES / 3) * 4 * MAXIMUM_IMAGES)
  })
})

describe('a text-to-video create', () => {
  const text = sectionOf(TEXT)

  it('has every field the specification shows, with a value it shows', () => {
    const shown = /Request fields: (.*?)\. Response:/s.exec(text)?.[1] ?? ''
    const names = shown.replace(/\{.*\}/, '()').match(/[a-z_]+(?= [({])/g) ?? []
    expect(names).toEqual(expect.arrayContaining(['model_name', 'camera_control', 'callback_url']))
    expect(Object.keys(documented(TextVideoDto))).toEqual(expect.arrayContaining(names))
    expect(shown).toContain(`config {${CAMERA_AXES.join(', ')}: numbers}`)
    expect(shown).toContain('mode (string, value std shown)')
    expect(shown).toContain('aspect_ratio (string, 16:9 shown), duration (number shown)')
    expect([MODES, ASPECT_RATIOS]).toEqual([expect.arrayContaining(['std']), expect.arrayContaining(['16:9'])])
    const check = new DtoCheck(TextVideoDto)
    for (const seconds of TEXT_DURATIONS) expect(check.accepts({ prompt: 'x', duration: Number(seconds) })).toBe(true)
  })

  it('lets every other parameter pass', () => {
    expect(text).toContain('Other parameters follow the upstream interface unchanged.')
    expect(new DtoCheck(TextVideoDto).accepts({ prompt: 'x', sound: 'on', multi_shot: [{ a: 1 }] })).toBe(true)
  })
})

it('a success has the envelope of the specification', () => {
  expect(lineAfter(MULTI_IMAGE, 'Envelope of every response:')).toBe(
    'code (integer, 0 means success), message (string), request_id (string), data',
  )
  const envelope = JSON.parse(successEnvelope('req_1', '{}')) as Record<string, unknown>
  expect(Object.entries(envelope).map(([name, value]) => [name, typeof value])).toEqual([
    ['code', 'number'],
    ['message', 'string'],
    ['request_id', 'string'],
    ['data', 'object'],
  ])
  expect(envelope['code']).toBe(0)
})
