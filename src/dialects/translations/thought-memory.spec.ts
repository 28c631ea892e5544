import { describe, expect, it } from '@jest/globals'
import { OwnerSeals } from './seals.js'
import { ThoughtMemory } from './thought-memory.js'

const MINUTE_MS = 60_000

/** Makes no text longer. */
const OPEN_SEALS = { seal: (text: string) => text, open: (sealed: string) => sealed }

function lab(maximumCharacters?: number) {
  let nowMs = 0
  const memory = new ThoughtMemory(() => nowMs, maximumCharacters)
  return {
    memory: { of: (owner: string) => memory.of(owner, OPEN_SEALS) },
    wait: (ms: number) => {
      nowMs += ms
    },
  }
}

describe('What a model thought before it called a tool', () => {
  it('is recalled as often as it is asked for, by its owner alone', () => {
    const { memory } = lab()
    memory.of('a').remember('call_1', '[1]')
    expect(memory.of('a').recall('call_1')).toBe('[1]')
    expect(memory.of('a').recall('call_1')).toBe('[1]')
    expect(memory.of('b').recall('call_1')).toBeUndefined()
    expect(memory.of('a').recall('call_2')).toBeUndefined()
  })

  it('is forgotten after an hour', () => {
    const { memory, wait } = lab()
    memory.of('a').remember('call_1', '[1]')
    wait(59 * MINUTE_MS)
    expect(memory.of('a').recall('call_1')).toBe('[1]')
    wait(MINUTE_MS)
    expect(memory.of('a').recall('call_1')).toBeUndefined()
  })

  it('makes place for what others thought, the longest unused first', () => {
    const { memory } = lab(60)
    const thoughts = memory.of('a')
    thoughts.remember('1', 'x'.repeat(20))
    thoughts.remember('2', 'x'.repeat(20))
    thoughts.recall('1')
    thoughts.remember('3', 'x'.repeat(20))
    expect([thoughts.recall('1'), thoughts.recall('2'), thoughts.recall('3')]).toEqual([
      'x'.repeat(20),
      undefined,
      'x'.repeat(20),
    ])
  })

  it('is not remembered where it is longer than 64 KiB', () => {
    const { memory } = lab()
    memory.of('a').remember('1', 'x'.repeat(65_536))
    memory.of('a').remember('2', 'x'.repeat(65_537))
    expect(memory.of('a').recall('1')).toHaveLength(65_536)
    expect(memory.of('a').recall('2')).toBeUndefined()
  })

  it('is replaced by what it thought later before the same call', () => {
    const { memory } = lab(30)
    memory.of('a').remember('1', 'x'.repeat(20))
    memory.of('a').remember('1', 'y'.repeat(20))
    expect(memory.of('a').recall('1')).toBe('y'.repeat(20))
  })

  it('is sealed in memory, and lost where the secret is another one', () => {
    const memory = new ThoughtMemory()
    memory.of('a', new OwnerSeals(Buffer.from('secret'), 'a')).remember('1', '[{"thinking":"plan"}]')
    expect(JSON.stringify([...(memory as unknown as { entries: Map<string, unknown> }).entries])).not.toContain('plan')
    expect(memory.of('a', new OwnerSeals(Buffer.from('secret'), 'a')).recall('1')).toBe('[{"thinking":"plan"}]')
    expect(memory.of('a', new OwnerSeals(Buffer.from('other'), 'a')).recall('1')).toBeUndefined()
  })
})
