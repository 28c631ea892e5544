import { describe, expect, it } from '@jest/globals'
import { TranslationRun } from '../../../test/support/translation.js'
import type { ModelFacts } from '../model-facts.js'
import { chatOverMessages } from './chat-over-messages/chat-over-messages.js'
import { messagesOverChat } from './messages-over-chat/messages-over-chat.js'
import { responsesOverChat } from './responses-over-chat/responses-over-chat.js'

type Facts = Partial<ModelFacts>

const messages = [{ role: 'user', content: 'Hello' }]

const fromMessages = (fields: object, facts: Facts, isStrict = false) =>
  new TranslationRun(
    { client: 'messages', upstream: 'chat' },
    messagesOverChat,
    { max_tokens: 64_000, messages, ...fields },
    { facts: { thinking: 'adaptive', ...facts }, isStrict },
  )

const fromResponses = (effort: string | undefined, facts: Facts, isStrict = false, fields: object = {}) =>
  new TranslationRun(
    { client: 'responses', upstream: 'chat' },
    responsesOverChat,
    { input: 'Hello', reasoning: { effort }, ...fields },
    { facts: { thinking: 'adaptive', ...facts }, isStrict },
  )

const fromChat = (reasoning_effort: string, facts: Facts) =>
  new TranslationRun(
    { client: 'chat', upstream: 'messages' },
    chatOverMessages,
    { messages, reasoning_effort, max_completion_tokens: 1000 },
    { facts: { thinking: 'adaptive', ...facts } },
  )

const budget = (budget_tokens: number): object => ({ thinking: { type: 'enabled', budget_tokens } })
const O_SERIES: Facts = { efforts: ['low', 'medium', 'high'] }
const FIFTH: Facts = { efforts: ['minimal', 'low', 'medium', 'high'] }
const TOOLS_OR_THINKING: Facts = { thinkingWithTools: false, efforts: ['none', 'low', 'high'] }
const QUIET = { thinking: { type: 'disabled' } }
const tools = [{ name: 'look', input_schema: { type: 'object' } }]
const effortOf = (effort: string): object => ({ output_config: { effort } })

describe('An effort that the model of a chat upstream does not take', () => {
  it.each<[object, Facts, string, string]>([
    [{ thinking: { type: 'disabled' } }, O_SERIES, 'low', 'thinking'],
    [{ thinking: { type: 'disabled' } }, FIFTH, 'minimal', 'thinking'],
    [{ output_config: { effort: 'max' } }, FIFTH, 'high', 'output_config.effort'],
    [{ output_config: { effort: 'low' } }, { efforts: ['high'] }, 'high', 'output_config.effort'],
    [{ output_config: { effort: 'medium' } }, { efforts: ['high', 'low'] }, 'low', 'output_config.effort'],
    [{ output_config: { effort: 'low' } }, { efforts: ['none', 'high'] }, 'high', 'output_config.effort'],
    [{ output_config: { effort: 'low' } }, { efforts: ['none'] }, 'none', 'output_config.effort'],
    [budget(1024), O_SERIES, 'low', 'thinking.budget_tokens'],
    [budget(32_000), O_SERIES, 'high', 'thinking.budget_tokens'],
  ])('is the nearest for a messages client, shown as approximated: %j with %j', (fields, facts, effort, path) => {
    const { sent, verdicts } = fromMessages(fields, facts)
    expect([sent['reasoning_effort'], verdicts.approximated]).toEqual([effort, path])
    expect(() => fromMessages(fields, facts, true)).toThrow(/only approximately/)
  })

  it.each([
    ['none', 'low'],
    ['minimal', 'low'],
    ['xhigh', 'high'],
    ['max', 'high'],
  ])('is the nearest for a client of responses, shown as approximated: %s as %s', (asked, effort) => {
    const { sent, verdicts } = fromResponses(asked, O_SERIES)
    expect([sent['reasoning_effort'], verdicts.approximated]).toEqual([effort, 'reasoning.effort'])
    expect(() => fromResponses(asked, O_SERIES, true)).toThrow(/only approximately/)
  })

  it.each<[string, Facts, object, RegExp, object]>([
    [
      'one that the dialect has',
      O_SERIES,
      {},
      /approximately\. Send output_config\.effort: high, or /,
      effortOf('high'),
    ],
    ['none', { efforts: ['none'] }, {}, /approximately\. Send thinking: \{type: disabled\} instead, or /, QUIET],
    [
      'none, because of tools',
      TOOLS_OR_THINKING,
      { tools },
      /\. Send thinking: \{type: disabled\} instead, or /,
      QUIET,
    ],
    ['one that the dialect lacks', { efforts: ['none', 'minimal'] }, {}, /approximately\. Leave it out, or /, {}],
  ])(
    'tells a strict messages client a way out that works where the nearest is %s',
    (_which, facts, fields, hint, wayOut) => {
      expect(() => fromMessages({ ...fields, ...effortOf('max') }, facts, true)).toThrow(hint)
      expect(() => fromMessages({ ...fields, ...wayOut }, facts, true)).not.toThrow()
    },
  )

  it.each(['low', 'high'])('is no matter where the model takes what is asked: %s', (asked) => {
    expect(fromMessages({ output_config: { effort: asked } }, O_SERIES, true).sent['reasoning_effort']).toBe(asked)
    expect(fromResponses(asked, O_SERIES, true).sent['reasoning_effort']).toBe(asked)
  })

  it.each(['none', 'max', 'unheard'])('is left to the upstream where nothing is known of the model: %s', (asked) => {
    expect(fromMessages({ output_config: { effort: asked } }, {}, true).sent['reasoning_effort']).toBe(asked)
    expect(fromResponses(asked, {}, true).sent['reasoning_effort']).toBe(asked)
  })
})

describe('A model that chat lets think only without tools', () => {
  const facts = TOOLS_OR_THINKING
  const functions = { tools: [{ type: 'function', name: 'look', parameters: { type: 'object' }, strict: false }] }

  it.each<[object, string]>([
    [{ thinking: { type: 'adaptive' } }, 'thinking'],
    [budget(8192), 'thinking.budget_tokens'],
    [{ output_config: { effort: 'high' } }, 'output_config.effort'],
  ])('is asked not to where a messages client has tools, shown as approximated: %j', (fields, path) => {
    const { sent, verdicts } = fromMessages({ ...fields, tools }, facts)
    expect([sent['reasoning_effort'], verdicts.approximated]).toEqual(['none', path])
  })

  it.each([{}, { thinking: { type: 'disabled' } }])(
    'is as quiet as a messages client expects it to be: %j',
    (fields) => {
      expect(fromMessages({ ...fields, tools }, facts, true).sent['reasoning_effort']).toBe('none')
    },
  )

  it.each([
    ['high', 'reasoning.effort'],
    [undefined, 'reasoning'],
  ])('is asked not to where a client of responses has tools, shown as approximated: %s', (effort, path) => {
    const { sent, verdicts } = fromResponses(effort, facts, false, functions)
    expect([sent['reasoning_effort'], verdicts.approximated]).toEqual(['none', path])
  })

  it('thinks as it is asked to where there are no tools', () => {
    expect(fromMessages({ output_config: { effort: 'high' }, tools: [] }, facts).sent['reasoning_effort']).toBe('high')
    expect(fromMessages({}, facts).sent).not.toHaveProperty('reasoning_effort')
    expect(fromResponses('high', facts).sent['reasoning_effort']).toBe('high')
    expect(fromResponses(undefined, facts).sent).not.toHaveProperty('reasoning_effort')
  })

  it('is left to its upstream where it cannot be kept from it, or where nothing is known of it', () => {
    const always: Facts = { ...facts, efforts: ['low', 'high'] }
    expect(fromMessages({ output_config: { effort: 'high' }, tools }, always).sent['reasoning_effort']).toBe('high')
    expect(fromMessages({ tools }, {}).sent).not.toHaveProperty('reasoning_effort')
  })
})

describe('An effort of a client of responses', () => {
  it('is dropped where the model does not think', () => {
    const { sent, verdicts } = fromResponses('high', { thinking: 'none' })
    expect([sent['reasoning_effort'], verdicts.dropped]).toEqual([undefined, 'reasoning.effort'])
  })

  it('says nothing new to a model that does not think, if it is none', () => {
    expect(fromResponses('none', { thinking: 'none' }, true).sent).not.toHaveProperty('reasoning_effort')
  })
})

describe('An effort that the model of a messages upstream does not take', () => {
  it.each<[string, Facts, string]>([
    ['xhigh', O_SERIES, 'high'],
    ['none', { thinkingOff: 'never', efforts: ['medium', 'high'] }, 'medium'],
  ])('is the nearest, shown as approximated: %s with %j', (asked, facts, effort) => {
    const { sent, verdicts } = fromChat(asked, facts)
    expect([sent['output_config'], verdicts.approximated]).toEqual([{ effort }, 'reasoning_effort'])
  })
})
