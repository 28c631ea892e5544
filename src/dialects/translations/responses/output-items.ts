import { isCutJson } from '../cut-calls.js'

/** Items of a response's output, as whole answers and the last events of streams show them. */

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete'

interface OutputText {
  readonly type: 'output_text'
  readonly text: string
}

interface OutputRefusal {
  readonly type: 'refusal'
  readonly refusal: string
}

export type OutputPart = OutputText | OutputRefusal

/** Every member of the type present. */
export const partObject = (part: OutputPart): object =>
  part.type === 'refusal' ? part : { type: 'output_text', annotations: [], logprobs: [], text: part.text }

export const messageItem = (id: string, status: ItemStatus, parts: readonly OutputPart[]): object => ({
  id,
  type: 'message',
  status,
  role: 'assistant',
  content: parts.map(partObject),
})

export const summaryPart = (text: string): object => ({ type: 'summary_text', text })

export const reasoningItem = (id: string, summaries: readonly string[], sealed: string | undefined): object => ({
  id,
  type: 'reasoning',
  summary: summaries.map(summaryPart),
  ...(sealed === undefined ? {} : { encrypted_content: sealed }),
})

export interface CalledTool {
  readonly isCustom: boolean
  readonly callId: string
  readonly name: string
}

/** `text`: arguments of a function, or the input of a custom tool. */
export const callItem = (
  id: string,
  status: ItemStatus,
  { isCustom, callId, name }: CalledTool,
  text: string,
): object => ({
  id,
  type: isCustom ? 'custom_tool_call' : 'function_call',
  status,
  [isCustom ? 'input' : 'arguments']: text,
  call_id: callId,
  name,
})

/** Of a call in an item that ends so: one whose arguments are cut is incomplete, wherever it stands. */
export const callStatus = ({ isCustom }: CalledTool, text: string, status: ItemStatus): ItemStatus =>
  !isCustom && isCutJson(text) ? 'incomplete' : status

/** What a function is called with that takes nothing: clients parse it. */
export const NO_ARGUMENTS = '{}'

/** Upstreams leave the arguments out of such a call. One that was cut may have had some. */
export const isWithoutArguments = ({ isCustom }: CalledTool, text: string, status: ItemStatus): boolean =>
  text === '' && !isCustom && status === 'completed'
