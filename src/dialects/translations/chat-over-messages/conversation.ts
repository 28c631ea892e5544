import { quoted } from '../../../core/errors.js'
import { isRecord } from '../../../core/validation-rules.js'
import type { TranslationTarget } from '../../translator.js'
import type { Verdicts } from '../../verdicts.js'
import { dropUnknown, invalidShape, isAbsent, isEmpty, type Members, objectAt, textAt } from '../members.js'
import { type Call, CallReader } from './calls.js'
import { type Block, CacheMarks, contentOf, type PlacedBlock, placeholderAt, textBlock } from '../to-messages/blocks.js'
import { blocksOf, type PartContext } from './parts.js'
import { thoughtfulTurn } from './thoughts.js'

type TurnRole = 'user' | 'assistant' | 'system'

/** A message of the upstream, and the caller's message that it was made of. */
export interface Turn {
  readonly role: TurnRole
  readonly path: string
  readonly blocks: readonly PlacedBlock[]
}

const known = (...names: readonly string[]): ReadonlySet<string> => new Set(['role', 'content', ...names])

const SYSTEM_MEMBERS = known()
const USER_MEMBERS = known()
const TOOL_MEMBERS = known('tool_call_id')
const FUNCTION_MEMBERS = known('name')
/** Clients push answers back as they came: what only shows an answer means nothing in a request. */
const ASSISTANT_MEMBERS = known(
  'refusal',
  'tool_calls',
  'function_call',
  'audio',
  'thinking_blocks',
  'reasoning_content',
  'annotations',
  'parsed',
)

/** The caller's messages as turns of the upstream's conversation. */
export class Conversation {
  readonly system: PlacedBlock[] = []
  readonly turns: Turn[] = []
  private readonly context: PartContext
  private readonly calls: CallReader
  /** Of the message that is read next. */
  private next = 0

  constructor(
    private readonly messages: readonly unknown[],
    private readonly target: TranslationTarget,
    private readonly verdicts: Verdicts,
  ) {
    this.context = { facts: target.facts, verdicts, marks: new CacheMarks() }
    this.calls = new CallReader(verdicts)
    while (this.next < messages.length) this.read(this.messageAt(this.next), this.next++)
    this.context.marks.apply(verdicts)
    this.complete()
  }

  /** Whether the last message is an assistant's, which upstreams take for the beginning of the answer. */
  get isPrefilled(): boolean {
    return this.turns.at(-1)?.role === 'assistant'
  }

  private messageAt(index: number): Members {
    return objectAt(this.messages[index], `messages[${index}]`)
  }

  private read(message: Members, index: number): void {
    const path = `messages[${index}]`
    const role = textAt(message['role'], `${path}.role`)
    if (role === 'system' || role === 'developer') this.readSystem(message, path)
    else if (role === 'user') this.add('user', path, this.userBlocks(message, path))
    else if (role === 'assistant') this.readAssistant(message, path, index)
    else if (role === 'tool' || role === 'function') this.refuseResult(message, path)
    else this.verdicts.refuse(`${path}.role`, 'Send messages of system, developer, user, assistant and tool.')
  }

  private add(role: TurnRole, path: string, blocks: readonly PlacedBlock[]): void {
    if (blocks.length > 0) this.turns.push({ role, path, blocks })
  }

  /** The last message is the one to be answered, which instructions alone cannot be. */
  private readSystem(message: Members, path: string): void {
    dropUnknown(message, SYSTEM_MEMBERS, path, this.verdicts)
    const blocks = blocksOf(message['content'], `${path}.content`, 'system', this.context)
    if (blocks.length === 0) return
    const isFirst = this.turns.length === 0
    const isTaken = this.target.facts.systemRole === 'system' && !isFirst
    if (isTaken) this.add('system', path, blocks)
    else if (this.next === this.messages.length) this.moved('user', path, blocks)
    else if (isFirst) this.system.push(...blocks)
    else this.moved('system', path, blocks)
  }

  private moved(role: 'user' | 'system', path: string, blocks: readonly PlacedBlock[]): void {
    this.verdicts.approximate(`${path}.role`)
    if (role === 'user') this.add('user', path, blocks)
    else this.system.push(...blocks)
  }

  private userBlocks(message: Members, path: string): PlacedBlock[] {
    dropUnknown(message, USER_MEMBERS, path, this.verdicts)
    return blocksOf(message['content'], `${path}.content`, 'user', this.context)
  }

  private readAssistant(message: Members, path: string, index: number): void {
    dropUnknown(message, ASSISTANT_MEMBERS, path, this.verdicts)
    if (!isAbsent(message['audio'])) this.verdicts.refuse(`${path}.audio`, 'Send what was said as text.')
    const texts = [
      ...blocksOf(message['content'], `${path}.content`, 'assistant', this.context),
      ...refusalBlocks(message['refusal'], `${path}.refusal`),
    ]
    const calls = this.calls.callsOf(message, path, index)
    const turn = [...texts, ...calls.map(({ block, path: callPath }) => ({ block, path: callPath }))]
    // Where sources stood in an answer means nothing to a model.
    if (!isEmpty(message['annotations'])) this.verdicts.drop(`${path}.annotations`)
    const ids = calls.map(({ id }) => id)
    const blocks = thoughtfulTurn(turn, message, path, ids, this.target.thoughts, this.verdicts)
    // Thoughts alone are no turn.
    if (turn.length > 0) this.add('assistant', path, blocks)
    if (calls.length > 0) this.readResults(calls)
  }

  /** All results in one message, in the order of the calls, and before what the user says: upstreams refuse any other order. */
  private readResults(calls: readonly Call[]): void {
    const path = `messages[${this.next}]`
    const results = new Map<Call, PlacedBlock>()
    const waiting = callsById(calls)
    while (this.next < this.messages.length) {
      const message = this.messageAt(this.next)
      if (message['role'] !== 'tool' && message['role'] !== 'function') break
      const resultPath = `messages[${this.next++}]`
      const id = message['role'] === 'function' ? oldCallId(calls) : message['tool_call_id']
      const call = waiting.get(id)?.pop()
      if (call === undefined) return this.refuseResult(message, resultPath)
      results.set(call, { block: this.resultOf(call, message, resultPath), path: resultPath })
    }
    const blocks = calls.map((call) => results.get(call) ?? this.refuseCall(call))
    this.add('user', path, [...blocks, ...this.userBlocksNext()])
  }

  private userBlocksNext(): PlacedBlock[] {
    const message = this.messages[this.next]
    if (!isRecord(message) || message['role'] !== 'user') return []
    return this.userBlocks(message, `messages[${this.next++}]`)
  }

  private resultOf({ block: { id } }: Call, message: Members, path: string): Block {
    const result: Block = { type: 'tool_result', tool_use_id: id }
    dropUnknown(message, message['role'] === 'tool' ? TOOL_MEMBERS : FUNCTION_MEMBERS, path, this.verdicts)
    const blocks = blocksOf(message['content'], `${path}.content`, 'tool', this.context, result)
    if (blocks.length > 0) result['content'] = contentOf(blocks.map(({ block }) => block))
    return result
  }

  private refuseCall({ id, path }: Call): never {
    return this.verdicts.refuse(path, `Send a tool message for the call ${quoted(id)} directly after it.`)
  }

  private refuseResult(message: Members, path: string): never {
    if (message['role'] === 'function') {
      return this.verdicts.refuse(
        `${path}.name`,
        `Send the call of ${quoted(textAt(message['name'], `${path}.name`))} before it.`,
      )
    }
    const id = textAt(message['tool_call_id'], `${path}.tool_call_id`)
    return this.verdicts.refuse(`${path}.tool_call_id`, `Send the call ${quoted(id)} directly before its results.`)
  }

  /** An upstream's conversation begins with a user, and ends with an assistant only where the caller's does. */
  private complete(): void {
    if (this.messages.length === 0) throw invalidShape('messages', 'at least one message')
    const [first] = this.turns
    if (first?.role === 'assistant') {
      this.verdicts.approximate(first.path)
      this.turns.unshift(placeholder(first.path))
    }
    const lastPath = `messages[${this.messages.length - 1}]`
    if (this.turns.length === 0 || (this.isPrefilled && this.turns.at(-1)?.path !== lastPath)) {
      this.verdicts.approximate(lastPath)
      this.turns.push(placeholder(lastPath))
    }
  }
}

const placeholder = (path: string): Turn => ({ role: 'user', path, blocks: [placeholderAt(path)] })

function refusalBlocks(refusal: unknown, path: string): PlacedBlock[] {
  const block = isAbsent(refusal) ? undefined : textBlock(textAt(refusal, path))
  return block === undefined ? [] : [{ block, path }]
}

/** Calls by their ids; the next one to be answered is the last of them. */
function callsById(calls: readonly Call[]): ReadonlyMap<unknown, Call[]> {
  const byId = new Map<unknown, Call[]>()
  for (const call of calls.toReversed()) {
    const others = byId.get(call.id)
    if (others === undefined) byId.set(call.id, [call])
    else others.push(call)
  }
  return byId
}

/** Results of the old form name no call: there was one at most. */
function oldCallId(calls: readonly Call[]): string | undefined {
  const last = calls.at(-1)
  return last?.isLegacy === true ? last.id : undefined
}
