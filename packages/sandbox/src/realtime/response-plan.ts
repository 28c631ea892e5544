import { TextRun } from '../server/generated-text.js'
import { fieldOf, isObject, type JsonObject, textOf } from '../server/json-value.js'
import { answerPieces, magicArguments } from '../server/magic-text.js'
import { exampleOf } from '../server/schema-example.js'
import type { ConversationItem } from './conversation-item.js'
import { inputTextOf, type ResponseRequest } from './response.js'

export type PlannedOutput =
  | { readonly kind: 'message'; readonly words: TextRun }
  | { readonly kind: 'call'; readonly name: string; readonly input: string }

/** Decides what the model says: calls when tools are offered and asked for, otherwise words. */
export function planResponse(request: ResponseRequest): readonly PlannedOutput[] {
  const calls = wantsCalls(request) ? plannedCalls(request) : []
  if (calls.length === 0) return [message(request, answerWords(request.turn))]
  if (!request.wish.words.has('mixed')) return calls
  return [message(request, 'Let me look that up for you, it will not take long.'), ...calls]
}

/** Something about the input that a test can predict: lengths and checksums of audio, texts as they are. */
export function answerWords(turn: readonly ConversationItem[]): string {
  const answers = turn.map(answerTo).filter((words) => words !== '')
  return answers.length === 0 ? 'You said nothing.' : answers.join(' ')
}

function answerTo(item: ConversationItem): string {
  if (item.fields['type'] === 'function_call_output') return `The tool answered: ${textOf(item.fields['output'])}`
  if (item.fields['role'] === 'system') return ''
  const said = inputTextOf(item)
  const words = said === '' ? [] : [`You said: ${said}`]
  if (item.audio !== undefined) {
    const { durationMs, format, checksum } = item.audio
    words.push(`I heard ${Math.round(durationMs)} ms of ${format} audio with checksum ${checksum}.`)
  }
  return words.join(' ')
}

/** A word of the answer counts as one token towards the limit. */
function message(request: ResponseRequest, words: string): PlannedOutput {
  const limit = request.facts.maximumOutputTokens
  const pieces = answerPieces(request.callerText, words)
  return { kind: 'message', words: new TextRun(pieces, limit === 'inf' ? Number.POSITIVE_INFINITY : limit, []) }
}

function wantsCalls({ facts, turn, callerText, wish }: ResponseRequest): boolean {
  const choice = facts.toolChoice
  if (choice === 'none' || turn.some((item) => item.fields['type'] === 'function_call_output')) return false
  if (choice === 'required' || isObject(choice)) return true
  return wish.words.has('tool') || wish.words.has('mixed') || namedTools(facts.tools, callerText).length > 0
}

function plannedCalls({ facts, callerText }: ResponseRequest): readonly PlannedOutput[] {
  const functions = facts.tools.filter((tool) => tool['type'] === 'function')
  const forced = textOf(fieldOf(facts.toolChoice, 'name'))
  const named = namedTools(functions, callerText)
  const chosen = named.length > 0 ? named : functions.slice(0, 1)
  const usable = forced === '' ? chosen : functions.filter((tool) => tool['name'] === forced)
  return usable.map((tool, index) => {
    const verbatim = index === 0 ? magicArguments(callerText) : undefined
    const parameters = tool['parameters']
    const input = verbatim ?? JSON.stringify(parameters === undefined ? {} : exampleOf(parameters))
    return { kind: 'call', name: textOf(tool['name']), input }
  })
}

function namedTools(tools: readonly JsonObject[], text: string): readonly JsonObject[] {
  return tools.filter((tool) => text.includes(textOf(tool['name'])))
}
