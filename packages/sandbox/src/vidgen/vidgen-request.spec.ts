import { describe, expect, it } from '@jest/globals'
import { VidgenRejection } from './vidgen-errors.js'
import { judgeCreate, type VidgenKind } from './vidgen-request.js'

/** The first bytes of a PNG of this size, filled up to a number of bytes. */
function png(width: number, height: number, size = 24): string {
  const bytes = Buffer.alloc(size)
  Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex').copy(bytes)
  bytes.writeUInt32BE(width, 16)
  bytes.writeUInt32BE(height, 20)
  return bytes.toString('base64')
}

/** A JPEG of this size: an EXIF segment, a fill byte, a table, then the frame header. */
function jpeg(width: number, height: number): string {
  const frame = Buffer.from([0xff, 0xc2, 0, 11, 8, height >> 8, height & 255, width >> 8, width & 255, 1, 1, 17, 0])
  const exif = Buffer.from([0xff, 0xe1, 0, 6, 1, 2, 3, 4])
  return Buffer.concat([Buffer.from([0xff, 0xd8]), exif, Buffer.from([0xff, 0xff, 0xc4, 0, 2]), frame]).toString(
    'base64',
  )
}

const IMAGES = { image_list: [{ image: png(300, 300) }], prompt: 'a red kite' }
const TEXT = { prompt: 'a red kite' }

/** The words of the refusal; undefined when there is none. */
function refusal(kind: VidgenKind, body: object, prefix = 'vidgen-'): string | undefined {
  try {
    judgeCreate(kind, body as Record<string, unknown>, prefix)
    return undefined
  } catch (error) {
    if (!(error instanceof VidgenRejection)) throw error
    expect(error.code).toBe(1201)
    return error.message
  }
}

const ofImages = (change: object): string | undefined => refusal('multi-image2video', { ...IMAGES, ...change })
const ofText = (change: object): string | undefined => refusal('text2video', { ...TEXT, ...change })
const image = (value: unknown): string | undefined => ofImages({ image_list: [{ image: value }] })

describe('a create of either kind', () => {
  it.each([
    {},
    { negative_prompt: 'rain', mode: 'pro', duration: '10', aspect_ratio: '9:16' },
    { watermark_info: { enabled: true }, callback_url: 'https://example.com/x', external_task_id: 'order-77' },
    { prompt: '🪁'.repeat(2500), negative_prompt: null },
    { unheard_of: { by: 'the service' }, model: 'anything' },
  ])('is good with all it may have', (change) => {
    expect([ofImages(change), ofText(change)]).toEqual([undefined, undefined])
  })

  it.each([
    ['prompt', { prompt: undefined }, /^prompt is required$/],
    ['prompt', { prompt: ' ' }, /^prompt is required$/],
    ['prompt', { prompt: 7 }, /^prompt must be a string$/],
    ['prompt', { prompt: '🪁'.repeat(2501) }, /^prompt must have at most 2500 characters, got 2501$/],
    ['negative_prompt', { negative_prompt: 'a'.repeat(2501) }, /^negative_prompt must have at most 2500/],
    ['mode', { mode: 'fast' }, /^mode must be one of std, pro$/],
    ['duration', { duration: 5 }, /^duration must be one of 5, 10$/],
    ['duration', { duration: '7' }, /^duration must be one of 5, 10$/],
    ['aspect_ratio', { aspect_ratio: '4:3' }, /^aspect_ratio must be one of 16:9, 9:16, 1:1$/],
    ['watermark_info', { watermark_info: true }, /^watermark_info must be an object$/],
    ['watermark_info', { watermark_info: { enabled: 'yes' } }, /^watermark_info.enabled must be a boolean$/],
    ['callback_url', { callback_url: 'ftp://example.com' }, /^callback_url must be an http or https address$/],
    ['external_task_id', { external_task_id: 77 }, /^external_task_id must be a string$/],
    ['model_name', { model_name: 'vidgen-v9' }, /^model_name must be one of /],
  ])('is refused for a wrong %s, which is named', (_, change, words) => {
    expect(ofImages(change)).toMatch(words)
    expect(ofText(change)).toMatch(words)
  })

  it('has a model under the prefix of this upstream', () => {
    expect(refusal('multi-image2video', { ...IMAGES, model_name: 'other-v1-6' }, 'other-')).toBeUndefined()
    expect(refusal('multi-image2video', { ...IMAGES, model_name: 'vidgen-v1-6' }, 'other-')).toMatch(/other-v1-6$/)
  })

  it('is no JSON object: 1200', () => {
    expect(() => judgeCreate('text2video', undefined, 'vidgen-')).toThrow(expect.objectContaining({ code: 1200 }))
  })
})

describe('a create from text', () => {
  it.each([
    { cfg_scale: 0, sound: 'on', model_name: 'vidgen-v2-6' },
    { model_name: 'vidgen-v3', duration: '15' },
    { camera_control: { type: 'down_back' } },
    { camera_control: { type: 'forward_up', config: {} } },
    { camera_control: { type: 'simple', config: { horizontal: 0, pan: 0, zoom: -10 } } },
  ])('is good with %j', (change) => {
    expect(ofText(change)).toBeUndefined()
  })

  it.each([
    [{ cfg_scale: 1.1 }, /^cfg_scale must be a number between 0 and 1$/],
    [{ cfg_scale: '0.5' }, /^cfg_scale/],
    [{ sound: true }, /^sound must be one of on, off$/],
    [{ model_name: 'vidgen-v3', duration: '16' }, /^duration must be one of 3, 4/],
    [{ camera_control: 'simple' }, /^camera_control must be an object$/],
    [{ camera_control: {} }, /^camera_control.type is required$/],
    [{ camera_control: { type: 'loop' } }, /^camera_control.type must be one of simple, down_back/],
    [{ camera_control: { type: 'simple' } }, /^camera_control.config is required$/],
    [{ camera_control: { type: 'simple', config: { zoom: 11 } } }, /^camera_control.config.zoom must be a number/],
    [{ camera_control: { type: 'simple', config: { zoom: 0 } } }, /exactly one value other than 0$/],
    [{ camera_control: { type: 'simple', config: { zoom: 1, tilt: 1 } } }, /exactly one value other than 0$/],
    [{ camera_control: { type: 'down_back', config: { zoom: 1 } } }, /^camera_control.config must be empty/],
  ])('is refused for %j', (change, words) => {
    expect(ofText(change)).toMatch(words)
  })
})

describe('a create from images', () => {
  it('knows one model only', () => {
    expect(ofImages({ model_name: 'vidgen-v1-6' })).toBeUndefined()
    expect(ofImages({ model_name: 'vidgen-v1' })).toBe('model_name must be one of vidgen-v1-6')
  })

  it.each([undefined, [], {}, Array(5).fill({ image: png(300, 300) })])('needs one to four images', (image_list) => {
    expect(ofImages({ image_list })).toMatch(/^image_list (?:is required|must be an array of 1 to 4 images)$/)
  })

  it.each([
    ['an address', 'https://example.com/a.png'],
    ['a PNG', png(300, 300)],
    ['a JPEG', jpeg(300, 300)],
    ['the widest', png(750, 300)],
    ['the highest', jpeg(300, 750)],
    ['the largest', png(300, 300, 10 * 1024 * 1024)],
  ])('takes %s', (_, value) => {
    expect(image(value)).toBeUndefined()
  })

  it.each([
    ['nothing', undefined, 'is required'],
    ['an empty text', '', 'must be an address or Base64'],
    ['an address that is none', 'https://', 'must be an http or https address'],
    ['a data: prefix', `data:image/png;base64,${png(300, 300)}`, 'must be Base64 without the prefix data:'],
    ['no Base64', 'abc', 'is not valid Base64'],
    ['Base64 for addresses', `${png(300, 300)}-_-_`, 'is not valid Base64'],
    ['another format', Buffer.from('GIF89a and so on, long enough').toString('base64'), 'must be a jpg, jpeg or png'],
    ['a JPEG cut off', jpeg(300, 300).slice(0, 24), 'must be a jpg, jpeg or png'],
    ['a PNG over 10 MB', png(300, 300, 10 * 1024 * 1024 + 1), 'must have at most 10 MB'],
    ['a narrow PNG', png(299, 300), 'must be at least 300 pixels wide and high, got 299 x 300'],
    ['a low JPEG', jpeg(300, 299), 'must be at least 300 pixels wide and high, got 300 x 299'],
    ['a PNG too wide', png(751, 300), 'must have a ratio between 1:2.5 and 2.5:1, got 751 x 300'],
    ['a JPEG too high', jpeg(300, 751), 'must have a ratio between 1:2.5 and 2.5:1, got 300 x 751'],
  ])('refuses %s, naming which image', (_, value, words) => {
    expect(image(value)).toBe(`image_list[0].image ${words}`)
    expect(ofImages({ image_list: [{ image: png(300, 300) }, { image: value }] })).toMatch(/^image_list\[1\]/)
  })
})
