import { describe, expect, it } from '@jest/globals'
import {
  called,
  formatOf,
  HELLO,
  REDACTED,
  result,
  SEALS,
  sentOf,
  THOUGHT,
  tool,
  translation,
} from '../../../../test/support/chat-translation.js'
import { madeSignature } from '../seals.js'
import { ThoughtMemory } from '../thought-memory.js'

describe('the thinking of a chat request', () => {
  it.each([
    ['minimal', 100_000, 1024],
    ['low', 100_000, 2048],
    ['medium', 100_000, 8192],
    ['high', 100_000, 16_384],
    ['xhigh', 100_000, 32_000],
    ['max', 100_000, 32_000],
    ['max', 4000, 3200],
    ['low', 1025, 1024],
  ])('has a budget for %s below a maximum of %d', (reasoning_effort, max_tokens, budget_tokens) => {
    expect(sentOf({ reasoning_effort, max_tokens })['thinking']).toEqual({ type: 'enabled', budget_tokens })
  })

  it('is left out where the maximum has no room for it', () => {
    const { sent, approximated } = translation({ reasoning_effort: 'high', max_tokens: 1024 })
    expect([sent['thinking'], approximated]).toEqual([undefined, 'reasoning_effort'])
  })

  it.each([
    ['minimal', 'low'],
    ['low', 'low'],
    ['medium', 'medium'],
    ['high', 'high'],
    ['xhigh', 'xhigh'],
    ['max', 'max'],
  ])('has for %s the effort %s of a model that decides itself', (reasoning_effort, effort) => {
    const sent = sentOf({ reasoning_effort, ...formatOf({ type: 'object' }) }, { facts: { thinking: 'adaptive' } })
    expect(sent['thinking']).toEqual({ type: 'adaptive', display: 'summarized' })
    expect(sent['output_config']).toMatchObject({ effort, format: { type: 'json_schema' } })
  })

  it.each([
    ['never', undefined, { effort: 'low' }],
    ['between_tools', { type: 'between_tools' }, undefined],
  ] as const)('is little where a model cannot be kept from it: %s', (thinkingOff, thinking, config) => {
    const facts = { thinking: 'adaptive', thinkingOff } as const
    const { sent, approximated } = translation({ reasoning_effort: 'none' }, { facts })
    expect([sent['thinking'], sent['output_config'], approximated]).toEqual([thinking, config, 'reasoning_effort'])
  })

  it('is switched off for none, and unknown to a model that does not think', () => {
    const off = sentOf({ reasoning_effort: 'none' }, { facts: { thinking: 'adaptive' } })
    expect([off['thinking'], off['output_config']]).toEqual([{ type: 'disabled' }, undefined])
    const { sent, dropped } = translation({ reasoning_effort: 'high' }, { facts: { thinking: 'none' } })
    expect([sent['thinking'], dropped]).toEqual([undefined, 'reasoning_effort'])
  })

  it.each(['budget', 'adaptive'] as const)('yields to a tool that must be called, with facts %s', (thinking) => {
    const fields = { reasoning_effort: 'high', tools: [tool('f')], tool_choice: 'required' }
    const { sent, approximated } = translation(fields, { facts: { thinking } })
    expect([sent['thinking'], approximated]).toEqual([undefined, 'reasoning_effort'])
  })

  it('leaves no choice of words but the neutral one', () => {
    const { sent, dropped } = translation({ reasoning_effort: 'low', temperature: 0.9, top_p: 0.94 })
    expect([sent['temperature'], sent['top_p'], dropped]).toEqual([undefined, undefined, 'temperature,top_p'])
    expect(sentOf({ reasoning_effort: 'low', temperature: 1, top_p: 0.95 })).toMatchObject({
      temperature: 1,
      top_p: 0.95,
    })
  })

  it('leaves none where its model takes none', () => {
    const { sent, dropped } = translation({ temperature: 0.5, top_p: 1 }, { facts: { sampling: false } })
    expect([sent['temperature'], sent['top_p'], dropped]).toEqual([undefined, undefined, 'temperature'])
  })

  const loop = (message: object): object => ({ messages: [...HELLO, message, result('a')], reasoning_effort: 'low' })
  const call = { role: 'assistant', tool_calls: [called('a')] }
  const use = { type: 'tool_use', id: 'a', name: 'f', input: {} }
  const turnIn = (sent: Record<string, unknown>): unknown => (sent['messages'] as { content: unknown }[])[1]?.content

  it('comes back first and verbatim', () => {
    const silent = { type: 'thinking', thinking: '', signature: 'sig' }
    const { sent, approximated } = translation(loop({ ...call, content: 'x', thinking_blocks: [silent, REDACTED] }))
    expect(turnIn(sent)).toEqual([silent, REDACTED, { type: 'text', text: 'x' }, use])
    expect([sent['thinking'], approximated]).toEqual([{ type: 'enabled', budget_tokens: 2048 }, 'reasoning_effort'])
  })

  it('comes back from memory, whatever the client has kept of it', () => {
    const thoughts = new ThoughtMemory().of('owner', SEALS)
    thoughts.remember('a', JSON.stringify([THOUGHT, REDACTED]))
    thoughts.remember('b', JSON.stringify([REDACTED]))
    const messages = [
      ...HELLO,
      { role: 'assistant', tool_calls: [called('a'), called('b')], thinking_blocks: [REDACTED] },
      result('a'),
      result('b'),
    ]
    const sent = sentOf({ messages, reasoning_effort: 'low' }, { thoughts })
    expect(turnIn(sent)).toEqual([THOUGHT, REDACTED, use, REDACTED, { ...use, id: 'b' }])
    expect(sent['thinking']).toBeDefined()
    expect(translation(loop({ ...call, reasoning_content: 'Hm.' }), { thoughts }).dropped).toBeUndefined()
  })

  const between = { ...THOUGHT, textBefore: 5 }

  it.each([
    ['at its place', 'Hello\n\nworld', [{ type: 'text', text: 'Hello\n\n' }, THOUGHT, { type: 'text', text: 'world' }]],
    ['behind all of the text', ' Hello', [{ type: 'text', text: ' Hello' }, THOUGHT]],
  ])('comes back from memory %s', (_where, content, expected) => {
    const thoughts = new ThoughtMemory().of('owner', SEALS)
    thoughts.remember('a', JSON.stringify([REDACTED, between]))
    expect(turnIn(sentOf(loop({ ...call, content }), { thoughts }))).toEqual([REDACTED, ...expected, use])
  })

  it('is lost where less text comes back than stood before it', () => {
    const thoughts = new ThoughtMemory().of('owner', SEALS)
    thoughts.remember('a', JSON.stringify([REDACTED, between]))
    const { sent, approximated } = translation(loop({ ...call, content: 'Hell' }), { thoughts })
    expect(turnIn(sent)).toEqual([{ type: 'text', text: 'Hell' }, use])
    expect([sent['thinking'], approximated]).toEqual([undefined, 'reasoning_effort'])
  })

  it('that comes back with less text than stood before it takes none of that text with it', () => {
    const thoughts = new ThoughtMemory().of('owner', SEALS)
    const later = { ...THOUGHT, signature: 'later', textBefore: 104 }
    thoughts.remember('a', JSON.stringify([{ ...THOUGHT, textBefore: 4 }, later]))
    const { sent, approximated } = translation(loop({ ...call, content: 'AAAABB' }), { thoughts })
    expect(turnIn(sent)).toEqual([{ type: 'text', text: 'AAAABB' }, use])
    expect([sent['thinking'], approximated]).toEqual([undefined, 'reasoning_effort'])
  })

  it('is what the client has kept where its text is not that which is remembered', () => {
    const thoughts = new ThoughtMemory().of('owner', SEALS)
    thoughts.remember('a', JSON.stringify([{ ...THOUGHT, textBefore: 10 }]))
    const { sent } = translation(loop({ ...call, content: '', thinking_blocks: [THOUGHT, REDACTED] }), { thoughts })
    expect(turnIn(sent)).toEqual([THOUGHT, REDACTED, use])
    expect(sent['thinking']).toEqual({ type: 'enabled', budget_tokens: 2048 })
  })

  it.each([
    ['was lost', undefined],
    ['is of the gateway itself', [{ ...THOUGHT, signature: madeSignature() }]],
  ])('is switched off for a turn of a model with a budget whose thinking %s', (_name, thinking_blocks) => {
    const { sent, approximated, dropped } = translation(loop({ ...call, thinking_blocks }))
    expect(turnIn(sent)).toEqual([use])
    expect([sent['thinking'], approximated, dropped]).toEqual([undefined, 'reasoning_effort', undefined])
  })

  it('goes on for a strict caller where a model that decides itself chose not to think', () => {
    const { sent } = translation(loop(call), { facts: { thinking: 'adaptive' }, isStrict: true })
    expect(turnIn(sent)).toEqual([use])
    expect(sent['thinking']).toEqual({ type: 'adaptive', display: 'summarized' })
  })

  const step = (id: string, thinking_blocks?: object[]): object[] => [
    { role: 'assistant', tool_calls: [called(id)], thinking_blocks },
    result(id),
  ]
  const over = { role: 'assistant', content: 'x' }

  it.each<[string, boolean, readonly object[]]>([
    ['is lost at the beginning of the turn', false, [...step('a'), ...step('b', [THOUGHT])]],
    ['begins the turn', true, [...step('a', [THOUGHT]), ...step('b'), ...step('c')]],
    ['is lost before the user spoke', true, [...step('a'), over, ...HELLO, ...step('b', [THOUGHT])]],
    ['is lost in a turn that is over', true, [...step('a'), over, ...HELLO]],
    ['is lost in all of a turn that the user breaks in on', false, [...step('a'), ...step('b'), ...HELLO]],
    ['begins a turn that the user breaks in on', true, [...step('a', [THOUGHT]), ...step('b'), ...HELLO]],
    ['ends a turn that the user breaks in on', true, [...step('a'), ...step('b', [THOUGHT]), ...HELLO]],
  ])('%s: a model with a budget thinks: %s', (_where, thinks, messages) => {
    const sent = sentOf({ messages: [...HELLO, ...messages], reasoning_effort: 'low' })
    expect(sent['thinking'] !== undefined).toBe(thinks)
  })

  it('is none of the caller’s invention', () => {
    const invented = [{ type: 'thinking', thinking: 'x' }, { ...THOUGHT, signature: '' }, 'x']
    const { sent, dropped } = translation({ messages: [...HELLO, { ...call, thinking_blocks: invented }, result('a')] })
    expect(turnIn(sent)).toEqual([use])
    expect(dropped).toBe([0, 1, 2].map((index) => `messages[1].thinking_blocks[${index}]`).join())
    expect(translation(loop({ ...call, thinking_blocks: 'x' })).dropped).toBe('messages[1].thinking_blocks')
  })
})
