import type { GatewayError } from '../../../core/errors.js'
import { withCallersPath } from '../caller-paths.js'
import { isAbsent, type Members } from '../members.js'
import { fieldNamedIn } from '../to-messages/error-field.js'
import type { Conversation } from './conversation.js'

type PathOf = (rest: readonly string[]) => string | undefined

/** The caller's names of the upstream's fields. */
export class CallersPaths {
  private readonly fields: Readonly<Record<string, PathOf>>

  constructor(request: Members, conversation: Pick<Conversation, 'turns' | 'system'>, toolPaths: readonly string[]) {
    const same = (name: string): PathOf => given(request, name)
    this.fields = {
      model: same('model'),
      stream: same('stream'),
      temperature: same('temperature'),
      top_p: same('top_p'),
      service_tier: same('service_tier'),
      max_tokens: () => given(request, 'max_completion_tokens', 'max_tokens')([]) ?? 'max_completion_tokens',
      stop_sequences: same('stop'),
      metadata: given(request, 'safety_identifier', 'user'),
      thinking: same('reasoning_effort'),
      output_config: ([name]) => (name === 'format' ? 'response_format' : given(request, 'reasoning_effort')([])),
      tool_choice: given(request, 'tool_choice', 'function_call', 'parallel_tool_calls'),
      tools: ([index]) => (index === undefined ? 'tools' : toolPaths[Number(index)]),
      system: ([index]) => conversation.system[Number(index ?? 0)]?.path,
      messages: (rest) => messagePath(conversation, rest),
    }
  }

  /** The error with the caller's name of the field that the upstream names in it, if it is the caller's. */
  in(error: GatewayError): GatewayError {
    return withCallersPath(error, ([name = '', ...rest]) => this.of(name, rest), fieldNamedIn)
  }

  private of(name: string, rest: readonly string[]): string | undefined {
    return Object.hasOwn(this.fields, name) ? this.fields[name]?.(rest) : undefined
  }
}

const given =
  (request: Members, ...names: readonly string[]): PathOf =>
  () =>
    names.find((name) => !isAbsent(request[name]))

function messagePath(
  { turns }: Pick<Conversation, 'turns'>,
  [index, member, block]: readonly string[],
): string | undefined {
  if (index === undefined) return 'messages'
  const turn = turns[Number(index)]
  return (member === 'content' ? turn?.blocks[Number(block)]?.path : undefined) ?? turn?.path
}
