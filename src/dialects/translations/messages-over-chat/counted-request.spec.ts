import { describe, expect, it } from '@jest/globals'
import { judgeCountRequest } from '@multi-model-gateway/sandbox/p1/responses-request.js'
import { ResponseStore } from '@multi-model-gateway/sandbox/p1/responses-store.js'
import { TranslationRun } from '../../../../test/support/translation.js'
import { GatewayError } from '../../../core/errors.js'
import type { MessagesFields } from '../../anthropic-messages.js'
import type { ResponsesFields } from '../../openai-responses.js'
import type { ChatFields } from '../../openai-wire.js'
import type { QuestionTranslation } from '../../translator.js'
import { countedByResponses } from './counted-request.js'
import { messagesOverChat } from './messages-over-chat.js'

const tool = (name: string): object => ({ name, input_schema: { type: 'object', properties: {} } })
const SCHEMA = '{"type":"object","properties":{"a":{"minimum":1.0}},"required":["a"],"additionalProperties":false}'

function counted(fields: string): QuestionTranslation<ResponsesFields> {
  const { translation } = new TranslationRun<MessagesFields, ChatFields>(
    { client: 'messages', upstream: 'chat' },
    messagesOverChat,
    `{"model":"asked","messages":[{"role":"user","content":"Hi"}]${fields}}`,
    { upstreamModel: 'gpt-5.2', facts: { thinking: 'adaptive' } },
  )
  return countedByResponses(translation)
}

/** Taken by the simulator of the endpoint, as it stands. */
function sent(fields: object | string): Record<string, unknown> {
  const text = typeof fields === 'string' ? fields : `,${JSON.stringify(fields).slice(1, -1)}`
  const asked = JSON.parse(counted(text).request.bytes.toString()) as Record<string, unknown>
  judgeCountRequest(asked, { acceptUnknownFields: false, responses: new ResponseStore() })
  return asked
}

describe('A request whose tokens the Responses API counts', () => {
  it('says there in which format its answer is to be, spelled as its caller has it', () => {
    const format = `,"output_config":{"format":{"type":"json_schema","schema":${SCHEMA}}}`
    expect(sent(format)['text']).toEqual({
      format: { type: 'json_schema', name: 'answer', schema: JSON.parse(SCHEMA) as object, strict: true },
    })
    expect(counted(format).request.bytes.toString()).toContain(`"schema":${SCHEMA}`)
  })

  it('says there how much the model is to think', () => {
    expect(sent({ output_config: { effort: 'high' } })['reasoning']).toEqual({ effort: 'high' })
  })

  it.each([
    [{ type: 'auto' }, { tool_choice: 'auto' }],
    [
      { type: 'any', disable_parallel_tool_use: true },
      { tool_choice: 'required', parallel_tool_calls: false },
    ],
    [{ type: 'none' }, { tool_choice: 'none' }],
    [{ type: 'tool', name: 'b' }, { tool_choice: { type: 'function', name: 'b' } }],
  ])('says there which tools may be called: %j', (choice, expected) => {
    expect(sent({ tools: [tool('a'), tool('b')], tool_choice: choice })).toMatchObject(expected)
  })

  it('has no more fields than its caller has given it', () => {
    expect(sent('')).toEqual({ model: 'gpt-5.2', input: [{ role: 'user', content: 'Hi' }] })
  })

  it.each([
    ['text.format.schema', 'output_config.format.schema'],
    ['text.format.name', 'output_config.format'],
    ['text', undefined],
    ['reasoning.effort', 'output_config.effort'],
    ['tool_choice', 'tool_choice'],
    ['parallel_tool_calls', 'tool_choice.disable_parallel_tool_use'],
    ['tools[0].parameters', 'tools[0]'],
    ['model', 'model'],
  ])('is refused by the name that its caller has for %s', (param, expected) => {
    const choice = '"tool_choice":{"type":"auto","disable_parallel_tool_use":true}'
    const fields = `,"tools":[${JSON.stringify(tool('a'))}],${choice},"output_config":{"effort":"low","format":{"type":"json_schema","schema":${SCHEMA}}}`
    const error = counted(fields).error(new GatewayError('invalid_request', 'No.', { param, code: 'c' }))
    expect([error.details.param, error.details.code]).toEqual([expected, 'c'])
  })

  it('is refused by that name where the upstream has it in its message alone', () => {
    const error = counted(`,"output_config":{"format":{"type":"json_schema","schema":${SCHEMA}}}`).error(
      new GatewayError('invalid_request', 'text.format.schema: No.'),
    )
    expect(error.details.param).toBe('output_config.format.schema')
  })

  it('fails as it did where no field is named', () => {
    const error = new GatewayError('rate_limited', 'Later.')
    expect(counted('').error(error)).toBe(error)
  })
})
