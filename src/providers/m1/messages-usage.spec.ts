import { describe, expect, it } from '@jest/globals'
import type { Usage } from '../../core/request-context.js'
import { MessagesUsage } from './messages-usage.js'

const START =
  'event: message_start\ndata: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":25,"output_tokens":1}}}\n\n'
const DELTA = 'event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":15}}\n\n'
const TEXT =
  'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"text":"event: message_delta {\\"usage\\":1}"}}\n\n'

interface Reading {
  readonly found: Usage[]
  readonly soFar: Usage | undefined
  readonly passed: string
}

function readWith(count: number, ...regions: string[]): Reading {
  const found: Usage[] = []
  const usage = new MessagesUsage({ count }, (one) => found.push(one))
  const passed = regions.map((region) => usage.filter(Buffer.from(region)).toString()).join('')
  return { found, soFar: usage.usageSoFar(), passed }
}

const read = (...regions: string[]): Reading => readWith(0, ...regions)

describe('MessagesUsage', () => {
  it('takes the input from the start and lets the totals of the end replace the rest', () => {
    expect(read(START, TEXT, DELTA).found).toEqual([
      { units: { input_tokens: 25, output_tokens: 15 }, estimated: false },
    ])
  })

  it('is estimated when the stream is cut: the pieces that came, at least what the start had begun with', () => {
    expect(read(START + TEXT)).toMatchObject({
      found: [],
      soFar: { units: { input_tokens: 25, output_tokens: 1 }, estimated: true },
    })
    expect(readWith(7, START + TEXT).soFar).toEqual({ units: { input_tokens: 25, output_tokens: 7 }, estimated: true })
  })

  it('is unknown before the start', () => {
    expect(readWith(7, TEXT).soFar).toBeUndefined()
  })

  it('lets every byte pass, broken and foreign frames too', () => {
    const text = `${START}event: message_delta\ndata: {broken\n\nevent: message_stop\ndata: {}\n\n${DELTA}`
    expect(read(text).passed).toBe(text)
    expect(read(text.replaceAll('\n', '\r\n')).found).toHaveLength(1)
  })

  it('is not misled by the text of a model', () => {
    expect(read(TEXT).found).toEqual([])
  })
})
