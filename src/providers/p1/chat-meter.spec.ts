import { describe, expect, it } from '@jest/globals'
import { ChatMeter } from './chat-meter.js'

const REQUEST = { messages: [{ role: 'user', content: '12345678' }] }

describe('What a chat completion has used', () => {
  it('is, of a stream that has said it, counted beside that by its pieces alone', () => {
    const pieces = { count: 0 }
    const meter = new ChatMeter(REQUEST, pieces)
    pieces.count = 7
    expect(meter.counted()).toEqual({ completion_tokens: 7 })
  })

  it('is looked for in its request when nobody has said it', () => {
    const units = { prompt_tokens: 2 + 4 + 3, completion_tokens: 7, total_tokens: 2 + 4 + 3 + 7 }
    expect(new ChatMeter(REQUEST, { count: 7 }).usageSoFar()).toEqual({ units, estimated: true })
  })

  it('is not counted of an answer that is too large to be held', () => {
    const meter = new ChatMeter(REQUEST)
    expect(meter.counted()).toBeUndefined()
    expect(meter.usageSoFar()).toEqual({ units: { prompt_tokens: 2 + 4 + 3 }, estimated: true })
  })
})
