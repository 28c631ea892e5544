import { describe, expect, it } from '@jest/globals'
import { JsonBody } from '../../core/json-body.js'
import { withoutOwnReasoning, withoutOwnThinking } from './own-marks.js'
import { madeSignature, OwnerSeals } from './seals.js'

const seals = new OwnerSeals(Buffer.from('secret'), 'owner')
const own = JSON.stringify({ type: 'thinking', thinking: 'Hm.', signature: madeSignature() })
const foreign = '{"type":"thinking","thinking":"Hm.","signature":"EqQBCgIYAhIM"}'

const messagesBody = (messages: string) => {
  const body = JsonBody.parse(Buffer.from(`{"model":"m", "n":1.0,"messages":${messages} }`))
  return body.as(body.fields as { messages: unknown[] })
}
const sentMessages = (messages: string): string => withoutOwnThinking(messagesBody(messages)).bytes.toString()

const responsesBody = (input: string) => {
  const body = JsonBody.parse(Buffer.from(`{"model":"m","input":${input}}`))
  return body.as(body.fields as { input: unknown })
}

describe('Thinking that the gateway has signed', () => {
  it('is not shown to an upstream of messages; all else travels as it was spelled', () => {
    const turn = `{"role":"assistant" ,"content":[${own}, {"type":"tool_use","id":"a","name":"f","input":{"n":1.0}},${foreign}]}`
    expect(sentMessages(`[{"role":"user","content":"hi"},${turn}]`)).toBe(
      '{"model":"m", "n":1.0,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":' +
        `[{"type":"tool_use","id":"a","name":"f","input":{"n":1.0}},${foreign}]}] }`,
    )
  })

  it('that is a whole turn takes the turn with it', () => {
    expect(sentMessages(`[{"role":"user","content":"hi"},{"role":"assistant","content":[${own}]}]`)).toBe(
      '{"model":"m", "n":1.0,"messages":[{"role":"user","content":"hi"}] }',
    )
  })

  it.each([
    ['nothing is signed', '[{"role":"user","content":"hi"}]'],
    ['an upstream has signed', `[{"role":"assistant","content":[${foreign}]}]`],
    [
      'a text only looks so',
      '[{"role":"user","content":"gw1.x"},{"role":"user","content":[{"type":"text","text":"gw1."}]}]',
    ],
    [
      'a text only looks so between white space',
      '[ {"role":"user", "content":"gw1.x"} , {"role":"user","content":1.0} ]',
    ],
  ])('is looked for in vain where %s: every byte stays', (_why, messages) => {
    expect(sentMessages(messages)).toBe(messagesBody(messages).bytes.toString())
  })
})

describe('Reasoning that the gateway has sealed', () => {
  it('is not shown to an upstream of responses', () => {
    const sealed = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"${seals.seal('[]')}"}`
    const kept = '{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"gAAAA"}'
    expect(
      withoutOwnReasoning(responsesBody(`[${sealed},${kept},{"role":"user","content":1.0}]`)).bytes.toString(),
    ).toBe(`{"model":"m","input":[${kept},{"role":"user","content":1.0}]}`)
  })

  it.each(['"gw1."', '[{"role":"user","content":"gw1.x"}]'])('leaves every byte of other requests: %s', (input) => {
    expect(withoutOwnReasoning(responsesBody(input)).bytes.toString()).toBe(`{"model":"m","input":${input}}`)
  })
})
