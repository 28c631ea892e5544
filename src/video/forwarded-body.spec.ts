import { describe, expect, it } from '@jest/globals'
import { JsonBody } from '../core/json-body.js'
import type { VideoKind } from '../providers/video.contract.js'
import { forwardedBody, routedModel } from './forwarded-body.js'
import type { VideoFields } from './video-fields.js'

const IDS = { externalId: '0123456789ab.order-77' }
const ID = '"external_task_id":"0123456789ab.order-77"'

const forwarded = (
  text: string,
  {
    kind = 'text2video',
    model = 'upstream-name',
    callbackUrl,
  }: { kind?: VideoKind; model?: string; callbackUrl?: string } = {},
): string => {
  const body = JsonBody.parse(Buffer.from(text)).as<VideoFields>(JSON.parse(text) as VideoFields)
  return forwardedBody(kind, body, model, callbackUrl === undefined ? IDS : { ...IDS, callbackUrl }).toString()
}

describe('What a create sends upstream', () => {
  it('is the body of the caller, byte for byte, but for what the gateway must change', () => {
    const text = `{ "seed" : 12345678901234567890,"cfg_scale":1.0,\t"model_name":"vidgen-v1-6", "prompt":"\\u00e9\\/é🛶",
      "later":{"b":1e2,"a":[ ]},"external_task_id" : "order-77" , "duration":5,"callback_url":"https:\\/\\/me.example","z":null }`
    expect(forwarded(text, { callbackUrl: 'https://gateway.example/vidgen/callbacks/t' })).toBe(
      text
        .replace('"vidgen-v1-6"', '"upstream-name"')
        .replace('"order-77"', '"0123456789ab.order-77"')
        .replace('"duration":5', '"duration":"5"')
        .replace('"https:\\/\\/me.example"', '"https://gateway.example/vidgen/callbacks/t"'),
    )
  })

  it('has no defaults that the caller left out', () => {
    expect(forwarded('{"prompt":"x"}')).toBe(`{"prompt":"x",${ID}}`)
    expect(forwarded('{"prompt":"x"}', { kind: 'multi-image2video' })).toBe(`{"prompt":"x",${ID}}`)
    expect(forwarded('{"prompt":"x","model_name":null,"duration":null}')).toBe(
      `{"prompt":"x","model_name":null,"duration":null,${ID}}`,
    )
  })

  it('never has the address of the caller', () => {
    expect(forwarded('{"callback_url":"https://me.example","prompt":"x"}')).toBe(`{"prompt":"x",${ID}}`)
    expect(forwarded('{"prompt":"x","callback_url":null}')).toBe(`{"prompt":"x",${ID}}`)
  })

  it('has the address of the gateway where there is one, whether the caller gave one or not', () => {
    const callbackUrl = 'https://gateway.example/c'
    const added = `"callback_url":"${callbackUrl}",${ID}`
    expect(forwarded('{"prompt":"x"}', { callbackUrl })).toBe(`{"prompt":"x",${added}}`)
  })

  it('keeps a duration in words, and puts one in numbers into words', () => {
    expect(forwarded('{"duration":"10"}')).toBe(`{"duration":"10",${ID}}`)
    expect(forwarded('{"duration":10.0}')).toBe(`{"duration":"10",${ID}}`)
  })

  it('keeps the spelling of a model name that is the same upstream', () => {
    expect(forwarded('{"model_name":"vidgen\\u002dv1"}', { model: 'vidgen-v1' })).toBe(
      `{"model_name":"vidgen\\u002dv1",${ID}}`,
    )
  })

  it('has the model of old clients under its present name, for text to video only', () => {
    expect(forwarded('{"model":"a","prompt":"x"}')).toBe(`{"prompt":"x","model_name":"upstream-name",${ID}}`)
    expect(forwarded('{"model":"a"}', { model: 'a' })).toBe(`{"model_name":"a",${ID}}`)
    expect(forwarded('{"model":"a","model_name":null}')).toBe(`{"model_name":"upstream-name",${ID}}`)
    expect(forwarded('{"model":"a","model_name":"b"}')).toBe(`{"model":"a","model_name":"upstream-name",${ID}}`)
    expect(forwarded('{"model":["a"]}', { kind: 'multi-image2video' })).toBe(`{"model":["a"],${ID}}`)
  })
})

describe('The model that decides about access and channel', () => {
  it.each([
    ['text2video', { model_name: 'a', model: 'b' }, 'a'],
    ['text2video', { model: 'b' }, 'b'],
    ['text2video', { model_name: null, model: 'b' }, 'b'],
    ['text2video', {}, 'vidgen-v1'],
    ['multi-image2video', { model_name: 'a' }, 'a'],
    ['multi-image2video', { model: 'b' }, 'vidgen-v1-6'],
    ['multi-image2video', {}, 'vidgen-v1-6'],
  ] as const)('of %s with %j is %s', (kind, fields, model) => {
    expect(routedModel(kind, fields)).toBe(model)
  })
})
