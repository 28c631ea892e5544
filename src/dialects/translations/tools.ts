import type { JsonText } from '../../core/json-text.js'
import type { Members } from './members.js'

/** Tools of a request, and what of them may be called or must be, whatever the client's dialect. */

interface ToolHead {
  readonly path: string
  /** Of the object that has the name: chat nests it. */
  readonly bodyPath: string
  readonly name: string
  readonly description: string | undefined
}

interface FunctionTool extends ToolHead {
  readonly kind: 'function'
  /** Absent = none are taken. */
  readonly parameters: { readonly schema: Members; readonly spelled: JsonText } | undefined
  readonly strict: boolean
}

/** Takes a text instead of arguments. */
interface CustomTool extends ToolHead {
  readonly kind: 'custom'
  /** undefined = any text. */
  readonly grammar: Members | undefined
}

export type Tool = FunctionTool | CustomTool

/** A tool as a choice names it. */
export interface NamedTool {
  readonly kind: Tool['kind']
  readonly name: string
  readonly path: string
}

type Choice =
  | { readonly kind: 'none' | 'auto' | 'required' }
  | { readonly kind: 'named'; readonly tool: NamedTool }
  | { readonly kind: 'allowed'; readonly isRequired: boolean; readonly tools: readonly NamedTool[] }

/** `path`: of the caller's field. */
export type ToolChoice = Choice & { readonly path: string }
