import 'reflect-metadata'
import { describe, expect, it } from '@jest/globals'
import { DtoCheck } from '../core/dto-check.js'
import { CAMERA_AXES, CAMERA_TYPES } from './camera-control.rule.js'
import { TextVideoDto } from './video.dto.js'

const check = new DtoCheck(TextVideoDto)
const good = { prompt: 'a paper boat on a canal' }

async function refusedFor(fields: Record<string, unknown>): Promise<string | undefined> {
  try {
    await check.assert({ ...good, ...fields })
    return undefined
  } catch (error) {
    const { kind, details, message } = error as { kind: string; message: string; details: { param: string } }
    expect(kind).toBe('invalid_request')
    expect(message).toContain(details.param)
    return details.param
  }
}

/** One character in two UTF-16 units and four bytes. */
const WIDE = '🛶'
const simple = (config: object): object => ({ type: 'simple', config })
const seconds = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index)

const ACCEPTED: readonly (readonly [string, readonly unknown[]])[] = [
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
]

const REFUSED: readonly (readonly [string, readonly unknown[], string?])[] = [
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
]

describe('A text-to-video create', () => {
  it.each(ACCEPTED.flatMap(([name, values]) => values.map((value) => [name, shown(value), value] as const)))(
    'is accepted with %s %s',
    async (name, _shown, value) => {
      expect(await refusedFor({ [name]: value })).toBeUndefined()
    },
  )

  it.each(
    REFUSED.flatMap(([name, values, param = name]) =>
      values.map((value) => [name, shown(value), param, value] as const),
    ),
  )('is refused with %s %s, naming %s', async (name, _shown, param, value) => {
    expect(await refusedFor({ [name]: value })).toBe(param)
  })
})

function shown(value: unknown): string {
  const text = value === undefined ? 'undefined' : JSON.stringify(value)
  return text.length <= 60 ? text : `${text.slice(0, 30)}… (${text.length})`
}
