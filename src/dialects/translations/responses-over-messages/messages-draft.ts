import { type ReasoningAsked, ResponsesDraft } from '../responses/request-draft.js'
import type { Tool, ToolChoice } from '../tools.js'

/** What is known of a messages request before all fields have been read, some of which depend on others. */
export class MessagesDraft extends ResponsesDraft {
  reasoning: ReasoningAsked | undefined
  tools: readonly Tool[] = []
  toolChoice: ToolChoice | undefined
  isSerial = false
  maximumTokens: number | undefined
  /** Members of `output_config`. */
  readonly outputConfig: Record<string, unknown> = {}
}
