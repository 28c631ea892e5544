import { quoted } from '../../../core/errors.js'
import { isRecord } from '../../../core/validation-rules.js'
import { dropUnknown, isAbsent, listAt, type Members, missingAt, objectAt, optionalTextAt, textAt } from '../members.js'
import { type Part, type PartReading, readParts } from './parts.js'

/** Instructions before or within a conversation. */
export interface InstructionsTurn {
  readonly kind: 'instructions'
  readonly path: string
  readonly parts: readonly Part[]
}

interface UserTurn {
  readonly kind: 'user'
  readonly path: string
  readonly parts: readonly Part[]
}

/** All that a model said until it was answered: items follow one another as it made them. */
export interface AssistantTurn {
  readonly kind: 'assistant'
  readonly entries: Entry[]
}

/** What came back for the calls of the turn before, in their order and all of it. */
interface ResultsTurn {
  readonly kind: 'results'
  readonly results: readonly Result[]
}

export type Turn = InstructionsTurn | UserTurn | AssistantTurn | ResultsTurn

export interface Said {
  readonly kind: 'said'
  readonly path: string
  readonly parts: readonly Part[]
}

export interface CallEntry {
  readonly kind: 'call'
  readonly path: string
  readonly isCustom: boolean
  readonly id: string
  readonly name: string
  /** Arguments of a function as JSON, or the input of a custom tool. */
  readonly text: string
}

export interface Reasoning {
  readonly kind: 'reasoning'
  readonly path: string
  readonly sealed: string | undefined
  /** What the caller may read of it. */
  readonly text: string
}

export type Entry = Said | CallEntry | Reasoning

export interface Result {
  readonly path: string
  readonly callId: string
  readonly parts: readonly Part[]
}

const COMMON = ['type', 'id', 'status']
const CALL = [...COMMON, 'call_id', 'name', 'caller', 'namespace']
const OUTPUT = [...COMMON, 'call_id', 'output', 'caller']

/** Types of items that other dialects have, and their known members; all others are of tools that upstreams run by themselves. */
const ITEMS: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ['message', new Set([...COMMON, 'role', 'content', 'phase'])],
  ['reasoning', new Set([...COMMON, 'summary', 'content', 'encrypted_content'])],
  ['function_call', new Set([...CALL, 'arguments'])],
  ['custom_tool_call', new Set([...CALL, 'input'])],
  ['function_call_output', new Set(OUTPUT)],
  ['custom_tool_call_output', new Set(OUTPUT)],
])

/** Types of items that are translated. */
export const ITEM_TYPES: readonly string[] = [...ITEMS.keys()]

/** What to do about items that are referred to. */
export const SEND_ITEMS = 'It is kept by an upstream that is asked in another dialect here: send the items themselves.'

/** What the items of an input depend on. */
interface ItemReading extends PartReading {
  /** What the caller calls an item. */
  itemPath(index: number): string
}

type Item = Entry | InstructionsTurn | UserTurn | (Result & { readonly kind: 'result' })

/**
 * Reads `instructions` and `input` as turns: those of the two sides take turns, calls of one turn stand together, and what came back
 * for them follows at once, as other dialects want it, wherever the caller has put it. Throws `invalid_request`.
 */
export function readConversation(instructions: unknown, input: unknown, reading: ItemReading): readonly Turn[] {
  const turns = new Turns(reading)
  if (!isAbsent(instructions)) {
    turns.add({
      kind: 'instructions',
      path: 'instructions',
      parts: readParts(instructions, 'instructions', 'instructions', reading),
    })
  }
  if (isAbsent(input)) throw missingAt('input')
  if (typeof input === 'string') {
    turns.add({ kind: 'user', path: 'input', parts: readParts(input, 'input', 'user', reading) })
    return turns.all([])
  }
  return turns.all(listAt(input, 'input').map((item, index) => readItem(item, reading.itemPath(index), reading)))
}

function readItem(value: unknown, path: string, reading: PartReading): Item {
  const item = objectAt(value, path)
  const type = typeOf(item, path)
  if (type === 'item_reference') reading.verdicts.refuse(path, SEND_ITEMS)
  const known = ITEMS.get(type)
  if (known === undefined) {
    return reading.verdicts.refuse(`${path}.type`, 'Send messages, and calls of functions with their outputs.')
  }
  dropUnknown(item, known, path, reading.verdicts)
  if (type === 'message') return readMessage(item, path, reading)
  if (type === 'reasoning') return readReasoning(item, path)
  refuseOtherCallers(item, path, reading)
  return type.endsWith('_output') ? readResult(item, path, reading) : readCall(item, type === 'custom_tool_call', path)
}

/** Clients leave it out where the role or the id says it. */
function typeOf({ type, role, id }: Members, path: string): string {
  if (!isAbsent(type)) return textAt(type, `${path}.type`)
  if (!isAbsent(role)) return 'message'
  if (typeof id === 'string') return 'item_reference'
  throw missingAt(`${path}.type`)
}

function readMessage(item: Members, path: string, reading: PartReading): Item {
  const role = textAt(item['role'], `${path}.role`)
  const content = (speaker: 'user' | 'assistant' | 'instructions'): readonly Part[] =>
    readParts(item['content'], `${path}.content`, speaker, reading)
  if (!isAbsent(item['phase'])) reading.verdicts.drop(`${path}.phase`)
  if (role === 'assistant') return { kind: 'said', path, parts: content('assistant') }
  if (role === 'user') return { kind: 'user', path, parts: content('user') }
  if (role === 'system' || role === 'developer') return { kind: 'instructions', path, parts: content('instructions') }
  return reading.verdicts.refuse(`${path}.role`, 'Send one of user, assistant, system, developer.')
}

/** Calls from within a program that the upstream runs belong to tools that are not served. */
function refuseOtherCallers({ caller, namespace }: Members, path: string, { verdicts }: PartReading): void {
  if (!isAbsent(caller) && !(isRecord(caller) && caller['type'] === 'direct')) {
    verdicts.refuse(`${path}.caller`, 'Only calls by the model itself are served.')
  }
  if (!isAbsent(namespace)) verdicts.refuse(`${path}.namespace`, 'Send calls of functions without a namespace.')
}

function readCall(item: Members, isCustom: boolean, path: string): CallEntry {
  const key = isCustom ? 'input' : 'arguments'
  return {
    kind: 'call',
    path,
    isCustom,
    id: textAt(item['call_id'], `${path}.call_id`),
    name: textAt(item['name'], `${path}.name`),
    text: textAt(item[key], `${path}.${key}`),
  }
}

const readResult = (item: Members, path: string, reading: PartReading): Item => ({
  kind: 'result',
  path,
  callId: textAt(item['call_id'], `${path}.call_id`),
  parts: readParts(item['output'], `${path}.output`, 'user', reading),
})

function readReasoning(item: Members, path: string): Reasoning {
  // The thoughts themselves, where an upstream shows them, else what was summed up of them.
  const shown = textsIn(item['content'])
  const texts = shown.length > 0 ? shown : textsIn(item['summary'])
  const sealed = optionalTextAt(item['encrypted_content'], `${path}.encrypted_content`)
  return { kind: 'reasoning', path, sealed, text: texts.join('\n\n') }
}

const textsIn = (parts: unknown): readonly string[] =>
  (Array.isArray(parts) ? parts : [])
    .map((part: unknown) => (isRecord(part) ? part['text'] : undefined))
    .filter((text) => typeof text === 'string')

/** Puts items into turns. */
class Turns {
  private readonly turns: Turn[] = []
  private assistant: AssistantTurn | undefined
  /** Results by the id of their call; the next one to be taken is the last of them. */
  private readonly results = new Map<string, Result[]>()
  private readonly taken = new Set<Result>()

  constructor(private readonly reading: PartReading) {}

  all(items: readonly Item[]): readonly Turn[] {
    for (const item of items.toReversed()) if (item.kind === 'result') this.await(item)
    for (const item of items) this.add(item)
    this.close()
    return this.turns
  }

  add(item: Item): void {
    if (item.kind === 'said' || item.kind === 'call' || item.kind === 'reasoning') {
      this.assistant ??= { kind: 'assistant', entries: [] }
      this.assistant.entries.push(item)
      return
    }
    this.close()
    if (item.kind !== 'result') this.turns.push(item)
    // The call that it answers has taken it, or there is none.
    else if (!this.taken.has(item)) this.refuse(item.path, item.callId, 'call')
  }

  private await(result: Result): void {
    const waiting = this.results.get(result.callId)
    if (waiting === undefined) this.results.set(result.callId, [result])
    else waiting.push(result)
  }

  /** What came back for the calls of a turn follows it. */
  private close(): void {
    const { assistant } = this
    if (assistant === undefined) return
    this.assistant = undefined
    this.turns.push(assistant)
    const calls = assistant.entries.filter((entry) => entry.kind === 'call')
    if (calls.length === 0) return
    const results = calls.map((call) => this.take(call))
    this.turns.push({ kind: 'results', results })
  }

  private take({ path, id }: CallEntry): Result {
    const result = this.results.get(id)?.pop() ?? this.refuse(path, id, 'output')
    this.taken.add(result)
    return result
  }

  private refuse(path: string, callId: string, missingItem: 'call' | 'output'): never {
    return this.reading.verdicts.refuse(`${path}.call_id`, `Send the ${missingItem} of ${quoted(callId)} as well.`)
  }
}

/**
 * Takes the instructions before the conversation out of it, with `all` those within it, too, which then apply from its beginning:
 * the meaning is kept, the place is not.
 */
export function splitInstructions(
  turns: readonly Turn[],
  all: boolean,
  { verdicts }: PartReading,
): { readonly instructions: readonly InstructionsTurn[]; readonly rest: readonly Turn[] } {
  const first = turns.findIndex(({ kind }) => kind !== 'instructions')
  const start = first === -1 ? turns.length : first
  const instructions: InstructionsTurn[] = []
  const rest: Turn[] = []
  turns.forEach((turn, index) => {
    if (turn.kind !== 'instructions' || (index > start && !all)) rest.push(turn)
    else {
      if (index > start) verdicts.approximate(turn.path)
      instructions.push(turn)
    }
  })
  return { instructions, rest }
}

/** Whether a turn calls tools. */
export const hasCalls = (turn: AssistantTurn): boolean => turn.entries.some((entry) => entry.kind === 'call')

/** The turns since a user spoke last, in which a model works by itself. */
export function currentTurns(turns: readonly Turn[]): readonly Turn[] {
  const last = turns.findLastIndex((turn) => turn.kind === 'user')
  return turns.slice(last + 1)
}
