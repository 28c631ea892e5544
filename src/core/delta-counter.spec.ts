import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { readLines } from './sse.js'
import { DeltaCounter } from './token-counter.js'

const ERROR_MARK = Buffer.from('data: { "error"')

function counted(...regions: string[]): number {
  const counter = new DeltaCounter()
  for (const region of regions) readLines(Buffer.from(region), ERROR_MARK, counter)
  return counter.count
}

const frame = (json: string): string => `data: ${json}\n\n`
const chunk = (delta: string, index = 0): string =>
  frame(`{"id":"c","object":"chat.completion.chunk","choices":[{"index":${index},"delta":${delta},"logprobs":null}]}`)

describe('A piece of an answer in an event stream', () => {
  it.each([
    ['text', '{"content":"Hello"}'],
    ['text that looks like the end of a frame', '{"content":"\\"delta\\":{}"}'],
    ['text of one blank', '{"content":" "}'],
    ['text beside a role', '{"role":"assistant","content":"Hello"}'],
    ['text with blanks between', '{ "content" : "Hello" }'],
    ['thoughts beside no text', '{"content":null,"reasoning_content":"Hm"}'],
    ['thoughts beside an empty text', '{"content":"","reasoning":"Hm"}'],
    ['a refusal', '{"refusal":"No"}'],
    ['a part of a tool call', '{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}'],
    ['a part of spoken audio', '{"audio":{"data":"AAAA"}}'],
    ['the text of messages', '{"type":"text_delta","text":"Hi"}'],
    ['the thinking of messages', '{"type":"thinking_delta","thinking":"Hm"}'],
    ['the input of a tool of messages', '{"type":"input_json_delta","partial_json":"{\\"a"}'],
    ['a piece of a transcript', '" word"'],
  ])('is counted: %s', (_name, delta) => {
    expect(counted(chunk(delta))).toBe(1)
    // Behind one whose place was learned.
    expect(counted(chunk('{}') + chunk(delta), chunk(delta))).toBe(2)
  })

  it.each([
    ['the role', '{"role":"assistant","content":"","refusal":null}'],
    ['an empty delta', '{}'],
    ['an empty delta with a blank', '{ }'],
    ['no delta', 'null'],
    ['an empty text', '""'],
    ['a null', '{"content":null}'],
    ['no tool calls', '{"content":"","tool_calls":[]}'],
    ['an empty group', '{"audio":{}}'],
    ['the signature of a thought', '{"type":"signature_delta","signature":"EqQBCg"}'],
    ['the beginning of a tool input', '{"type":"input_json_delta","partial_json":""}'],
    ['the end of messages', '{"stop_reason":"end_turn","stop_sequence":"x"}'],
    ['a number', '{"index":3,"content":null}'],
  ])('is not %s', (_name, delta) => {
    expect(counted(chunk(delta))).toBe(0)
    expect(counted(chunk('{"content":"x"}') + chunk(delta), chunk(delta))).toBe(1)
  })

  it('is not looked for in comments, other fields, the figures and the end', () => {
    const others = ': "delta":{"content":"x"}\n\nevent: delta\nid: "delta":{"content":"x"}\n\n'
    expect(counted(others + frame('{"choices":[],"usage":{"total_tokens":3}}') + frame('[DONE]'))).toBe(0)
  })

  it('is found wherever it stands, also when that changes', () => {
    const other = frame('{"choices":[{"delta":{"content":"x"},"index":0}],"id":"a"}')
    expect(counted(chunk('{"content":"x"}') + other + chunk('{"content":"x"}', 10), other)).toBe(4)
    expect(counted(frame('{"choices":[{"index":0, "delta": {"content": "x"}}]}').replaceAll('\n', '\r\n'))).toBe(1)
  })

  it('is not made of bytes that are no JSON', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('data: ', '"delta":', '{', '}', '"', '\\', ',', ':', '[', ' ', 'a', '\n', '\r\n')),
        (parts) => {
          const text = parts.join('')
          expect(counted(text)).toBeLessThanOrEqual(text.split('\n').length)
        },
      ),
    )
  })

  it('is counted as a parser would', () => {
    const delta = fc.record({ content: fc.string(), role: fc.constant('assistant') }, { requiredKeys: [] })
    fc.assert(
      fc.property(fc.array(delta), (deltas) => {
        const stream = deltas.map((each) => frame(JSON.stringify({ choices: [{ index: 0, delta: each }] }))).join('')
        expect(counted(stream)).toBe(deltas.filter(({ content = '' }) => content !== '').length)
      }),
    )
  })
})
