import 'reflect-metadata'
import { describe, expect, it } from '@jest/globals'
import { pngText } from '../../test/support/byte-streams.js'
import { DtoCheck } from '../core/dto.js'
import { GatewayError } from '../core/errors.js'
import { JsonBody } from '../core/json-body.js'
import { MAXIMUM_IMAGE_BYTES } from './image-rules.js'
import { assertTaskId, readIdempotencyKey, readPage } from './video.service.js'
import { CAMERA_AXES, CAMERA_TYPES, MultiImageVideoDto, TextVideoDto } from './video.dto.js'

/** One character in two UTF-16 units and four bytes. */
const WIDE = '🛶'

const images = (count: number): object[] => Array<object>(count).fill({ image: pngText() })
const simple = (config: object): object => ({ type: 'simple', config })
const seconds = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index)

interface Create {
  readonly what: string
  readonly check: DtoCheck<object>
  readonly good: object
  /** Fields, each with values that it may have. */
  readonly accepted: readonly (readonly [field: string, values: readonly unknown[]])[]
  /** Fields, each with values that it may not have, and the parameter that is named where it is not the field. */
  readonly refused: readonly (readonly [field: string, values: readonly unknown[], param?: string])[]
}

const MULTI_IMAGE: Create = {
  what: 'A multi-image create',
  check: new DtoCheck(MultiImageVideoDto),
  good: { prompt: 'a paper boat', image_list: images(1) },
  accepted: [
    ['model_name', ['vidgen-v1-6', null, undefined]],
    ['image_list', [images(1), images(4), [{ image: 'https://example.com/a.png', note: 1 }]]],
    ['prompt', ['x', ' x ', 'x'.repeat(2_500), WIDE.repeat(2_500)]],
    ['negative_prompt', ['', ' ', WIDE.repeat(2_500), null]],
    ['mode', ['std', 'pro', null]],
    ['duration', ['5', '10', 5, 10, null]],
    ['aspect_ratio', ['16:9', '9:16', '1:1', null]],
    ['watermark_info', [{ enabled: true }, { enabled: false }, {}, null]],
    ['callback_url', ['https://example.com/hook', null]],
    ['external_task_id', ['a', '0'.repeat(128), 'Order_77.b:c-d', null]],
    ['something_new', [{ anything: [1, 2] }]],
  ],
  refused: [
    ['model_name', ['vidgen-v1', 'VIDGEN-V1-6', '', 6]],
    ['image_list', [undefined, null, [], images(5), {}, 'x']],
    ['image_list', [[...images(1), 'x']], 'image_list[1]'],
    ['image_list', [[{}], [{ image: null }], [{ image: 5 }], [{ image: '' }]], 'image_list[0].image'],
    ['image_list', [[...images(3), { image: `data:image/png;base64,${pngText()}` }]], 'image_list[3].image'],
    ['prompt', [undefined, null, '', ' \n\t', 5, 'x'.repeat(2_501), WIDE.repeat(2_501)]],
    ['negative_prompt', [5, WIDE.repeat(2_501)]],
    ['mode', ['Std', 'master', '', 1]],
    ['duration', ['4', '6', '15', '05', '5.0', ' 5', '', 4, 6, 5.5, -5, true, ['5']]],
    ['aspect_ratio', ['16/9', '4:3', '', 1]],
    ['watermark_info', ['x', true, []]],
    ['watermark_info', [{ enabled: 'true' }, { enabled: 1 }], 'watermark_info.enabled'],
    ['callback_url', [5, '', ' ', {}]],
    ['external_task_id', ['', '0'.repeat(129), 'a b', 'a/b', 'ä', 'a\n', 5]],
  ],
}

const TEXT_TO_VIDEO: Create = {
  what: 'A text-to-video create',
  check: new DtoCheck(TextVideoDto),
  good: { prompt: 'a paper boat on a canal' },
  accepted: [
    ['model_name', ['vidgen-v1', 'anything-else', null, undefined]],
    ['model', ['vidgen-v1', null]],
    ['prompt', ['x', WIDE.repeat(2_500)]],
    ['negative_prompt', ['', WIDE.repeat(2_500), null]],
    ['cfg_scale', [0, 0.5, 1, null]],
    ['mode', ['std', 'pro', null]],
    ['aspect_ratio', ['16:9', '9:16', '1:1', null]],
    ['duration', [...seconds(3, 15), ...seconds(3, 15).map(String), null]],
    ['watermark_info', [{ enabled: true }, {}, null]],
    ['callback_url', ['https://example.com/hook', null]],
    ['external_task_id', ['a', '0'.repeat(128), null]],
    ['sound', ['on', 5]],
    ['camera_control', [null, {}, { type: null }, { config: { pan: 3 } }]],
    ['camera_control', CAMERA_AXES.flatMap((axis) => [-10, -0.1, 10].map((move) => simple({ [axis]: move })))],
    ['camera_control', [simple({ horizontal: 0, vertical: 0, pan: 0, tilt: 0, roll: 0, zoom: 4, later: 'x' })]],
    ['camera_control', [simple({ zoom: 1, pan: null })]],
    [
      'camera_control',
      CAMERA_TYPES.filter((type) => type !== 'simple').flatMap((type) => [
        { type },
        { type, config: null },
        { type, config: {} },
      ]),
    ],
  ],
  refused: [
    ['model_name', ['', ' ', 5, 'a\u0000b']],
    ['model', ['', 5, 'a\u0000b']],
    ['prompt', [undefined, null, '', ' \n', 5, 'x'.repeat(2_501), WIDE.repeat(2_501)]],
    ['negative_prompt', [5, WIDE.repeat(2_501)]],
    ['cfg_scale', [-0.001, 1.001, '0.5', true]],
    ['mode', ['master', '', 1]],
    ['aspect_ratio', ['4:3', '', 1]],
    ['duration', [2, 16, 5.5, -5, '2', '16', '05', '5.0', '', ' 5', true, [5]]],
    ['watermark_info', [true]],
    ['callback_url', [5, '']],
    ['external_task_id', ['', '0'.repeat(129), 'a b', 5]],
    ['camera_control', ['simple', []]],
    ['camera_control', [{ type: 'spin' }, { type: '' }, { type: 5 }], 'camera_control.type'],
    ['camera_control', [{ type: 'simple' }, simple({}), { type: 'simple', config: null }], 'camera_control.config'],
    ['camera_control', [simple({ pan: 0, tilt: -0 }), simple({ pan: 1, tilt: 1 })], 'camera_control.config'],
    ['camera_control', [{ type: 'down_back', config: { zoom: 1 } }], 'camera_control.config'],
    ['camera_control', [{ type: 'forward_up', config: { zoom: 0 } }], 'camera_control.config'],
    ['camera_control', [{ type: 'simple', config: 'x' }, { config: 'x' }], 'camera_control.config'],
    [
      'camera_control',
      [simple({ zoom: 10.01 }), simple({ zoom: -10.01 }), simple({ zoom: '4' }), { config: { zoom: 11 } }],
      'camera_control.config.zoom',
    ],
  ],
}

function shown(value: unknown): string {
  const text = value === undefined ? 'undefined' : JSON.stringify(value)
  return text.length <= 60 ? text : `${text.slice(0, 30)}… (${text.length})`
}

describe.each([MULTI_IMAGE, TEXT_TO_VIDEO])('$what', ({ check, good, accepted, refused }) => {
  /** The field a body is refused for; undefined when it is accepted. */
  function refusedFor(fields: Record<string, unknown>): string | undefined {
    try {
      check.assert({ ...good, ...fields })
      return undefined
    } catch (error) {
      const { kind, details, message } = error as { kind: string; message: string; details: { param: string } }
      expect(kind).toBe('invalid_request')
      expect(message).toContain(details.param)
      return details.param
    }
  }

  it.each(accepted.flatMap(([name, values]) => values.map((value) => [name, shown(value), value] as const)))(
    'is accepted with %s %s',
    (name, _shown, value) => {
      expect(refusedFor({ [name]: value })).toBeUndefined()
    },
  )

  it.each(
    refused.flatMap(([name, values, param = name]) =>
      values.map((value) => [name, shown(value), param, value] as const),
    ),
  )('is refused with %s %s, naming %s', (name, _shown, param, value) => {
    expect(refusedFor({ [name]: value })).toBe(param)
  })
})

describe('The page of a list', () => {
  it.each([
    [{}, { offset: 0, limit: 30 }],
    [
      { pageNum: '1', pageSize: '1' },
      { offset: 0, limit: 1 },
    ],
    [{ pageNum: '3' }, { offset: 60, limit: 30 }],
    [
      { pageNum: '1000', pageSize: '500', other: 'x' },
      { offset: 499_500, limit: 500 },
    ],
    [{ pageNum: '02' }, { offset: 30, limit: 30 }],
  ])('for %j is %j', (query, page) => {
    expect(readPage(query)).toEqual(page)
  })

  it.each(['0', '-1', '1001', '99999', '1.5', '1e2', ' 1', '', 'x', '0x1', ['1', '2']])(
    'is refused with pageNum %j',
    (pageNum) => {
      expect(() => readPage({ pageNum })).toThrow(
        expect.objectContaining({
          kind: 'invalid_request',
          message: "Invalid 'pageNum': expected a whole number from 1 to 1000.",
        }),
      )
    },
  )

  it.each(['0', '501', '-1', '1.5', '', 'x'])('is refused with pageSize %j', (pageSize) => {
    expect(() => readPage({ pageSize })).toThrow(/'pageSize': expected a whole number from 1 to 500/)
  })
})

describe('The id in a path', () => {
  it.each(['831200000000000001', 'task_aB3', 'order-77', 'a b', '...', 'ä', '€'.repeat(256)])('may be %s', (id) => {
    expect(() => {
      assertTaskId(id)
    }).not.toThrow()
  })

  it.each(['', '.', '..', '../x', 'a/b', 'a\\b', 'a\nb', 'a\0', '\u0085', 'x'.repeat(257)])(
    'is no task’s as %j, which would lead elsewhere upstream',
    (id) => {
      expect(() => {
        assertTaskId(id)
      }).toThrow(expect.objectContaining({ kind: 'not_found' }))
    },
  )
})

describe('An Idempotency-Key', () => {
  it.each([undefined, 'x', ' a ~', 'k'.repeat(255)])('may be %j', (key) => {
    expect(readIdempotencyKey(key)).toBe(key)
  })

  it.each(['', 'k'.repeat(256), 'a\tb', 'é', 'a\u007f'])('is refused as %j', (key) => {
    expect(() => readIdempotencyKey(key)).toThrow(
      expect.objectContaining({
        kind: 'invalid_request',
        details: expect.objectContaining({ param: 'Idempotency-Key' }),
      }),
    )
  })
})

describe('A long picture, which stays in the bytes of its request', () => {
  const check = new DtoCheck(MultiImageVideoDto)
  const pngOf = (bytes: number, firstByte?: number): string => {
    const png = Buffer.alloc(bytes, 7)
    Buffer.from(pngText(), 'base64').copy(png)
    if (firstByte !== undefined) png[0] = firstByte
    return png.toString('base64')
  }
  const faultOf = (item: object): unknown => {
    const { fields } = JsonBody.parse(Buffer.from(JSON.stringify({ prompt: 'x', image_list: [item] })))
    try {
      check.assert(fields)
      return undefined
    } catch (error) {
      return error instanceof GatewayError ? [error.details.param, error.details.code] : error
    }
  }

  it.each<readonly [what: string, item: object, code: string | undefined]>([
    ['that is right', { image: pngOf(100_000) }, undefined],
    ['of the largest size', { image: pngOf(MAXIMUM_IMAGE_BYTES) }, undefined],
    ['that is too large', { image: pngOf(MAXIMUM_IMAGE_BYTES + 1) }, 'image_too_large'],
    ['as a data URL', { image: `data:image/png;base64,${pngOf(100_000)}` }, 'invalid_image'],
    ['of another kind', { image: pngOf(100_000, 0) }, 'unsupported_format'],
    ['that is no Base64', { image: `${pngOf(100_000)}!` }, 'invalid_image'],
  ])('%s is judged as a short one', (_what, item, code) => {
    expect(faultOf(item)).toEqual(code === undefined ? undefined : ['image_list[0].image', code])
  })

  it('beside a second spelling of its name is refused as a short one', () => {
    const short = faultOf({ image: pngOf(300), Image: 'x' })
    expect(short).toBeDefined()
    expect(faultOf({ image: pngOf(100_000), Image: 'x' })).toEqual(short)
  })
})
