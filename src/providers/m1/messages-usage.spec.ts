import { describe, expect, it } from '@jest/globals'
import type { Usage } from '../../common/http/call.js'
import { MessagesUsage } from './messages-usage.js'

const START =
  'event: message_start\ndata: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":25,"output_tokens":1}}}\n\n'
const DELTA = 'event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":15}}\n\n'
const TEXT =
  'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"text":"event: message_delta {\\"usage\\":1}"}}\n\n'

function read(...regions: string[]): { found: Usage[]; passed: string } {
  const found: Usage[] = []
  const usage = new MessagesUsage((one) => found.push(one))
  const passed = regions.map((region) => usage.filter(Buffer.from(region)).toString()).join('')
  return { found, passed }
}

describe('MessagesUsage', () => {
  it('takes the figures of the start and lets later totals replace them', () => {
    const { found } = read(START, TEXT, DELTA)
    expect(found).toEqual([
      { units: { input_tokens: 25, output_tokens: 1 }, estimated: false },
      { units: { input_tokens: 25, output_tokens: 15 }, estimated: false },
    ])
  })

  it('has the figures so far when the stream is cut', () => {
    expect(read(START + TEXT).found.at(-1)?.units).toEqual({ input_tokens: 25, output_tokens: 1 })
  })

  it('lets every byte pass, broken and foreign frames too', () => {
    const text = `${START}event: message_delta\ndata: {broken\n\nevent: message_stop\ndata: {}\n\n${DELTA}`
    expect(read(text).passed).toBe(text)
    expect(read(text.replaceAll('\n', '\r\n')).found).toHaveLength(2)
  })

  it('is not misled by the text of a model', () => {
    expect(read(TEXT).found).toEqual([])
  })
})
