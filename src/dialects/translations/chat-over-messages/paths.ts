import { GatewayError } from '../../../core/errors.js'
import { isAbsent, type Members } from '../members.js'
import type { Conversation } from './conversation.js'

/** The upstream's field at the beginning of what it says of it: `messages.3.content.1: …`, `` `temperature` may … ``. */
const NAMED_FIELD = /^(?:([`"'])([a-z_]+(?:[.[][\w\]]+)*)\1|([a-z_]+(?:[.[][\w\]]+)*)(?=:))/

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
  in({ kind, message, details }: GatewayError): GatewayError {
    const { param: upstreamParam, ...rest } = details
    const named = kind === 'invalid_request' ? fieldNamedIn(message) : undefined
    const param = this.of(upstreamParam ?? named)
    return new GatewayError(kind, message, param === undefined ? rest : { ...rest, param })
  }

  private of(upstreamPath: string | undefined): string | undefined {
    const [name, ...rest] = upstreamPath?.split(/[.[\]]+/).filter((step) => step !== '') ?? []
    return name !== undefined && Object.hasOwn(this.fields, name) ? this.fields[name]?.(rest) : undefined
  }
}

const given =
  (request: Members, ...names: readonly string[]): PathOf =>
  () =>
    names.find((name) => !isAbsent(request[name]))

function fieldNamedIn(message: string): string | undefined {
  const match = NAMED_FIELD.exec(message)
  return match?.[2] ?? match?.[3]
}

function messagePath(
  { turns }: Pick<Conversation, 'turns'>,
  [index, member, block]: readonly string[],
): string | undefined {
  if (index === undefined) return 'messages'
  const turn = turns[Number(index)]
  return (member === 'content' ? turn?.blocks[Number(block)]?.path : undefined) ?? turn?.path
}
