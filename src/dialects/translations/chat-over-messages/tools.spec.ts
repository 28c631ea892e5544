import { describe, expect, it } from '@jest/globals'
import { allowed, refusalOf, sentOf, tool } from '../../../../test/support/chat-translation.js'

describe('the tools of a chat request', () => {
  it('are described as the upstream wants it', () => {
    const tools = [
      {
        type: 'function',
        function: { name: 'a', description: 'A', parameters: { type: 'object', required: [] }, strict: true },
      },
      { type: 'function', function: { name: 'b', description: '', strict: false } },
      { type: 'function', function: { name: 'c', parameters: {} } },
      { type: 'custom', custom: { name: 'd', description: 'D', format: { type: 'text' } } },
    ]
    expect(sentOf({ tools, functions: [{ name: 'e', parameters: null }] })['tools']).toEqual([
      { name: 'a', description: 'A', input_schema: { type: 'object', required: [] }, strict: true },
      { name: 'b', input_schema: { type: 'object', properties: {} } },
      { name: 'c', input_schema: { type: 'object' } },
      {
        name: 'd',
        description: 'D',
        input_schema: { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] },
      },
      { name: 'e', input_schema: { type: 'object', properties: {} } },
    ])
  })

  it.each([
    ['none', {}, { type: 'none' }],
    ['auto', {}, { type: 'auto' }],
    ['required', {}, { type: 'any' }],
    [{ type: 'function', function: { name: 'f' } }, {}, { type: 'tool', name: 'f' }],
    [{ type: 'custom', custom: { name: 'c' } }, {}, { type: 'tool', name: 'c' }],
    [undefined, { parallel_tool_calls: false }, { type: 'auto', disable_parallel_tool_use: true }],
    ['required', { parallel_tool_calls: false }, { type: 'any', disable_parallel_tool_use: true }],
    ['none', { parallel_tool_calls: false }, { type: 'none' }],
    [undefined, {}, undefined],
  ])('are chosen by %j', (tool_choice, more, expected) => {
    const tools = [tool('f'), { type: 'custom', custom: { name: 'c' } }]
    expect(sentOf({ tools, tool_choice, ...more })['tool_choice']).toEqual(expected)
  })

  it.each([
    [{ tools: [tool('f')], tool_choice: 'required' }, 'tool_choice'],
    [{ tools: [tool('f')], tool_choice: { type: 'function', function: { name: 'f' } } }, 'tool_choice'],
    [{ functions: [{ name: 'f' }], function_call: { name: 'f' } }, 'function_call'],
  ])('are not forced on a model that takes no force: %j', (request, param) => {
    const facts = { forcedToolChoice: false }
    expect(refusalOf(request, { facts })).toMatchObject({ details: { param, code: 'unsupported_value' } })
    expect(sentOf({ tools: [tool('f')], tool_choice: 'auto' }, { facts })['tool_choice']).toEqual({ type: 'auto' })
  })

  it.each([
    ['auto', { type: 'auto' }],
    ['required', { type: 'any' }],
  ])('are cut down to those that are allowed, with %s', (mode, tool_choice) => {
    expect(sentOf(allowed(mode, 'h'))).toMatchObject({ tools: [{ name: 'h' }], tool_choice })
    expect(sentOf(allowed(mode, 'h'))['tools']).toHaveLength(1)
  })

  it.each([
    ['auto', { type: 'auto', disable_parallel_tool_use: true }],
    ['none', { type: 'none' }],
    [{ name: 'f' }, { type: 'tool', name: 'f', disable_parallel_tool_use: true }],
    [undefined, { type: 'auto', disable_parallel_tool_use: true }],
  ])('are called one at a time in the old form, chosen by %j', (function_call, expected) => {
    expect(sentOf({ functions: [{ name: 'f' }], function_call })['tool_choice']).toEqual(expected)
  })

  it('are not chosen where there are none', () => {
    expect(sentOf({ tool_choice: 'auto', parallel_tool_calls: false })['tool_choice']).toBeUndefined()
  })
})
