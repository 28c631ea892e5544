import { describe, expect, it } from '@jest/globals'
import type { Usage } from '../core/request-context.js'
import { DoneUsage } from './done-usage.js'

function read(...regions: string[]): { found: Usage[]; passed: string } {
  const found: Usage[] = []
  const usage = new DoneUsage('transcript.text.done', (one) => found.push(one))
  const passed = regions.map((region) => usage.filter(Buffer.from(region)).toString()).join('')
  return { found, passed }
}

const DONE =
  'data: {"type":"transcript.text.done","text":"a","usage":{"type":"tokens","total_tokens":28,' +
  '"input_token_details":{"audio_tokens":17}}}\r\n\r\n'

describe('DoneUsage', () => {
  it('reads the usage of the last event and lets every byte pass', () => {
    const delta = 'data: {"type":"transcript.text.delta","delta":"\\"transcript.text.done\\" {}"}\r\n\r\n'
    const { found, passed } = read(delta, delta + DONE + 'data: [DONE]\r\n\r\n')
    expect(found).toEqual([
      { units: { total_tokens: 28, input_token_details: { audio_tokens: 17 } }, estimated: false },
    ])
    expect(passed).toBe(delta + delta + DONE + 'data: [DONE]\r\n\r\n')
  })

  it.each(['data: {"type":"transcript.text.done","text":"a"}\n\n', 'data: {"type":"transcript.text.done",\n\n'])(
    'finds nothing in %j and lets it pass',
    (frame) => {
      expect(read(frame)).toEqual({ found: [], passed: frame })
    },
  )
})
