import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { readP2Metadata } from './p2-metadata.js'
import { p2Request, type P2RequestParts } from './p2-request.js'

const PARTS: P2RequestParts = {
  appId: '1234567890',
  accessToken: 'x',
  cluster: 'volcano_tts',
  userId: 'gw-7f3a',
  voiceType: 'zh_female_cancan_mars_bigtts',
  encoding: 'mp3',
  speedRatio: 1,
  reqid: '0b0f7c1e-6a55-4e7e-9d0a-2f3b1c9f6a10',
  text: 'Ni hao.',
  overlay: { audio: {}, request: {} },
}

interface Sent {
  readonly app: unknown
  readonly user: unknown
  readonly audio: Readonly<Record<string, unknown>>
  readonly request: Readonly<Record<string, unknown>>
}
const sent = (parts: Partial<P2RequestParts> = {}): Sent =>
  JSON.parse(p2Request({ ...PARTS, ...parts }).toString('utf8')) as Sent

describe('the request of P2', () => {
  it('is the example of the protocol', () => {
    expect(sent()).toEqual({
      app: { appid: '1234567890', token: 'x', cluster: 'volcano_tts' },
      user: { uid: 'gw-7f3a' },
      audio: { voice_type: 'zh_female_cancan_mars_bigtts', encoding: 'mp3', rate: 24000, speed_ratio: 1 },
      request: { reqid: '0b0f7c1e-6a55-4e7e-9d0a-2f3b1c9f6a10', text: 'Ni hao.', operation: 'submit' },
    })
  })

  it('names a model where one is given', () => {
    expect(sent({ model: 'seed-tts-1.1' }).request['model']).toBe('seed-tts-1.1')
  })

  it('has the rate of the metadata before its own, and the speed that was made of both', () => {
    const overlay = readP2Metadata({ audio: { rate: 8000, speed_ratio: 0.5, emotion: 'sad' } })
    expect(sent({ speedRatio: 0.8, overlay }).audio).toMatchObject({ rate: 8000, speed_ratio: 0.8, emotion: 'sad' })
    expect(sent({ speedRatio: 2 }).audio).toMatchObject({ rate: 24000, speed_ratio: 2 })
  })

  it('has extra parameters as text', () => {
    const overlay = readP2Metadata({ request: { extra_param: { aigc_watermark: true } } })
    expect(sent({ overlay }).request['extra_param']).toBe('{"aigc_watermark":true}')
  })

  it('keeps its credentials, voice, text and format whatever the overlay holds', () => {
    const overlay = {
      audio: { voice_type: 'other', encoding: 'wav' },
      request: { reqid: 'other', text: 'other', operation: 'query', model: 'other' },
    }
    expect(sent({ overlay })).toEqual(sent())
  })

  it('carries any text as UTF-8, a lone surrogate as the replacement character', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('\ud83d', '\ude00')) }),
        (text) => {
          expect(sent({ text }).request['text']).toBe(Buffer.from(text).toString('utf8'))
        },
      ),
    )
  })
})
