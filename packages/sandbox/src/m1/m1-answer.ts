import { randomBytes } from 'node:crypto'
import { TextRun } from '../server/generated-text.js'
import { fieldOf, type JsonObject, objectsOf, textOf } from '../server/json-value.js'
import { answerPieces, magicArguments } from '../server/magic-text.js'
import { exampleOf } from '../server/schema-example.js'
import { contentText, type M1Request, toolResultTexts } from './m1-request.js'
import { THINKING_TEXT } from './signature.js'

export type M1Block =
  | { readonly type: 'thinking'; readonly thinking: string; readonly omitted: boolean }
  | { readonly type: 'text'; readonly run: TextRun }
  | { readonly type: 'tool_use'; readonly id: string; readonly name: string; readonly inputJson: string }

/** Decides what the model says, block by block: its thinking, then tool calls or words. */
export function decideBlocks(request: M1Request): readonly M1Block[] {
  const thinking: M1Block[] =
    request.thinking === undefined
      ? []
      : [
          {
            type: 'thinking',
            thinking: THINKING_TEXT,
            omitted: request.thinking.display === 'omitted',
          },
        ]
  const calls = toolCalls(request)
  if (calls.length > 0) return [...thinking, ...calls]
  const pieces = answerPieces(request.callerText, words(request))
  return [...thinking, { type: 'text', run: new TextRun(pieces, request.maxTokens, request.stopSequences) }]
}

function words(request: M1Request): string {
  const last = request.messages.at(-1)
  const format = fieldOf(request.body['output_config'], 'format')
  if (fieldOf(format, 'type') === 'json_schema') return JSON.stringify(exampleOf(fieldOf(format, 'schema')))
  const results = toolResultTexts(last)
  if (results.length > 0) return `The tools answered: ${results.join('; ')}`
  // A final assistant message is a prefill: the answer goes on from there.
  if (last?.['role'] === 'assistant') return ` and so on, after ${contentText(last['content']).length} characters.`
  return request.callerText === '' ? 'You said nothing.' : `You said: ${request.callerText}`
}

function toolCalls(request: M1Request): readonly M1Block[] {
  const choice = request.body['tool_choice']
  const last = request.messages.at(-1)
  if (fieldOf(choice, 'type') === 'none' || last?.['role'] !== 'user' || toolResultTexts(last).length > 0) return []
  return chosenTools(request, choice).map((tool, index) => {
    const verbatim = index === 0 ? magicArguments(request.callerText) : undefined
    const inputJson = verbatim ?? JSON.stringify(exampleOf(tool['input_schema']))
    return { type: 'tool_use', id: `toolu_${randomBytes(12).toString('hex')}`, name: textOf(tool['name']), inputJson }
  })
}

/** The tools the caller's text names, or the first one; only one when a tool is forced or parallel use is off. */
function chosenTools(request: M1Request, choice: unknown): readonly JsonObject[] {
  const tools = objectsOf(request.body['tools']).filter((tool) => (tool['type'] ?? 'custom') === 'custom')
  if (fieldOf(choice, 'type') === 'tool') return tools.filter((tool) => tool['name'] === fieldOf(choice, 'name'))
  const named = tools.filter((tool) => request.callerText.includes(textOf(tool['name'])))
  const chosen = named.length > 0 ? named : tools.slice(0, 1)
  return fieldOf(choice, 'disable_parallel_tool_use') === true ? chosen.slice(0, 1) : chosen
}

export interface StopFacts {
  readonly stop_reason: string
  readonly stop_sequence: string | null
}

/** Why the answer ended; valid when all its blocks were written. */
export function stopOf(blocks: readonly M1Block[]): StopFacts {
  const last = blocks.at(-1)
  if (last?.type === 'tool_use') return { stop_reason: 'tool_use', stop_sequence: null }
  const run = last?.type === 'text' ? last.run : undefined
  if (run?.ended === 'limit') return { stop_reason: 'max_tokens', stop_sequence: null }
  if (run?.ended === 'stop') return { stop_reason: 'stop_sequence', stop_sequence: run.stoppedBy ?? null }
  return { stop_reason: 'end_turn', stop_sequence: null }
}
