import type { Verdicts } from '../../verdicts.js'
import { dropUnknown, isAbsent, type Members, objectAt, optionalListAt, textAt } from '../members.js'
import { CallIds, inputOfArguments } from '../tool-forms.js'
import type { Block } from '../to-messages/blocks.js'

/** A call of a tool in an assistant's turn. */
export interface Call {
  /** As the caller knows it. */
  readonly id: string
  readonly path: string
  readonly block: Block & { readonly id: string }
  /** Of the old form, whose results name no call. */
  readonly isLegacy: boolean
}

// SDKs add to arguments what they have parsed of them.
const CALL_MEMBERS: ReadonlySet<string> = new Set(['id', 'type', 'index', 'function', 'custom'])
const FUNCTION_MEMBERS: ReadonlySet<string> = new Set(['name', 'arguments', 'parsed_arguments'])
const CUSTOM_MEMBERS: ReadonlySet<string> = new Set(['name', 'input'])

/** Reads the calls of all turns. */
export class CallReader {
  private readonly ids = new CallIds()

  constructor(private readonly verdicts: Verdicts) {}

  /** Those of one assistant's message. */
  callsOf({ tool_calls: calls, function_call: call }: Members, path: string, index: number): Call[] {
    const read = optionalListAt(calls, `${path}.tool_calls`).map((value, position) =>
      this.callOf(value, `${path}.tool_calls[${position}]`),
    )
    if (isAbsent(call)) return read
    // The old form has no id: the position makes one, the same in every request of the conversation.
    const callPath = `${path}.function_call`
    const legacy = this.functionCall(objectAt(call, callPath), callPath, `function_call_${index}`, callPath)
    return [...read, { ...legacy, isLegacy: true }]
  }

  private callOf(value: unknown, path: string): Call {
    const call = objectAt(value, path)
    dropUnknown(call, CALL_MEMBERS, path, this.verdicts)
    const id = textAt(call['id'], `${path}.id`)
    const type = call['type'] ?? 'function'
    if (type === 'function') {
      return this.functionCall(objectAt(call['function'], `${path}.function`), `${path}.function`, id, path)
    }
    if (type !== 'custom') return this.verdicts.refuse(`${path}.type`, 'Send calls of functions or custom tools.')
    const custom = objectAt(call['custom'], `${path}.custom`)
    dropUnknown(custom, CUSTOM_MEMBERS, `${path}.custom`, this.verdicts)
    const input = { input: textAt(custom['input'], `${path}.custom.input`) }
    return this.call(id, path, textAt(custom['name'], `${path}.custom.name`), input)
  }

  private functionCall(called: Members, calledPath: string, id: string, path: string): Call {
    dropUnknown(called, FUNCTION_MEMBERS, calledPath, this.verdicts)
    const name = textAt(called['name'], `${calledPath}.name`)
    const text = isAbsent(called['arguments']) ? '' : textAt(called['arguments'], `${calledPath}.arguments`)
    const input = inputOfArguments(text, () => {
      this.verdicts.approximate(`${calledPath}.arguments`)
    })
    return this.call(id, path, name, input)
  }

  private call(id: string, path: string, name: string, input: object): Call {
    return { id, path, block: { type: 'tool_use', id: this.ids.next(id), name, input }, isLegacy: false }
  }
}
