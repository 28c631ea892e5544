import { type ReasoningAsked, ResponsesDraft } from '../responses/request-draft.js'
import type { Tool, ToolChoice } from '../responses/tools.js'

/** What is known of a messages request before all fields have been read, some of which depend on others. */
export class MessagesDraft extends ResponsesDraft {
  reasoning: ReasoningAsked | undefined
  tools: readonly Tool[] = []
  toolChoice: ToolChoice | undefined
  isSerial = false
  maximumTokens: number | undefined
  /** Members of `output_config`. */
  readonly outputConfig: Record<string, unknown> = {}

  /** Whether a tool must be called. */
  get isForced(): boolean {
    const { toolChoice: choice } = this
    return choice?.kind === 'required' || choice?.kind === 'named' || (choice?.kind === 'allowed' && choice.isRequired)
  }

  /** Names of tools that take a text. */
  get customNames(): ReadonlySet<string> {
    return new Set(this.tools.filter(({ kind }) => kind === 'custom').map(({ name }) => name))
  }
}
