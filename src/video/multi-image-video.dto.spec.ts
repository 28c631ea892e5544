import 'reflect-metadata'
import { describe, expect, it } from '@jest/globals'
import { pngText } from '../../test/support/images.js'
import { DtoCheck } from '../core/dto-check.js'
import { MultiImageVideoDto } from './multi-image-video.dto.js'

const check = new DtoCheck(MultiImageVideoDto)
const good = { prompt: 'a paper boat', image_list: [{ image: pngText() }] }
const images = (count: number): object[] => Array<object>(count).fill({ image: pngText() })

/** The field a body is refused for; undefined when it is accepted. */
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

const ACCEPTED: readonly (readonly [string, readonly unknown[]])[] = [
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
]

const REFUSED: readonly (readonly [string, readonly unknown[], string?])[] = [
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
]

describe('A multi-image create', () => {
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
  return text.length <= 40 ? text : `${text.slice(0, 30)}… (${text.length})`
}
