import { createHash, type Hash } from 'node:crypto'
import { malformedResponse } from '../../../upstream/upstream-response.js'
import type { TranslationTarget } from '../../translator.js'
import { type AnswerContext, signatureOf, textBlock, thinkingBlock, toolUseBlock } from './answer.js'

/** What waits for its turn in all blocks of one answer. */
const MAXIMUM_HELD_BYTES = 256 * 1024

type TextKind = 'text' | 'thinking'

interface Block {
  readonly kind: TextKind | 'tool_use'
  /** In `tool_calls`. */
  readonly toolIndex: number
  id: string
  name: string
  /** What came before the block could be opened. */
  held: string
  isClosed: boolean
  readonly end: JsonEnd
}

const isReady = ({ kind, id, name }: Block): boolean => kind !== 'tool_use' || (id !== '' && name !== '')

/** A call is over when its input is a whole JSON value: pieces of several calls may come in any order. */
const mayClose = ({ kind, end }: Block): boolean => kind !== 'tool_use' || end.isReached

/** Some upstreams give all calls of a turn the same index, each of them whole. */
const isAnother = (known: Block, id: string, name: string): boolean =>
  known.end.isReached && name !== '' && id !== '' && id !== known.id

/**
 * Writes the blocks of a message strictly one after another, as clients add deltas to the last block: what belongs to another block than
 * the open one is held until that is over. Each method returns frames.
 */
export class BlockWriter {
  hasCalls = false
  private index = -1
  private open: Block | undefined
  private waiting: Block[] = []
  private readonly tools = new Map<number, Block>()
  private reportedBytes = 0
  private digest: Hash | undefined

  constructor(
    private readonly context: AnswerContext,
    private readonly memory: TranslationTarget['memory'],
  ) {}

  text(kind: TextKind, text: string): string {
    if (this.open?.kind === kind) return this.delta(this.open, text)
    const last = this.waiting.at(-1)
    if (last?.kind === kind) return this.hold(last, text)
    const block = newBlock(kind)
    this.waiting.push(block)
    return this.hold(block, text)
  }

  /** A piece of a call; id and name come once, perhaps after pieces of the input. */
  call(toolIndex: number, id: string, name: string, input: string): string {
    const known = this.tools.get(toolIndex)
    const block = known === undefined || isAnother(known, id, name) ? this.newCall(toolIndex) : known
    if (block.id === '') block.id = id
    if (block.name === '') block.name = name
    if (block === this.open) {
      block.end.read(input)
      return this.delta(block, input) + (block.end.isReached ? this.advance() : '')
    }
    if (!block.isClosed) return this.hold(block, input)
    if (input.trim() === '') return ''
    throw malformedResponse('The upstream went on with the input of a call that was over.')
  }

  /** Calls of a refused turn are not handed on. */
  dropWaitingCalls(): void {
    this.waiting = this.waiting.filter(({ kind }) => kind !== 'tool_use')
  }

  /** Everything that is left, once nothing more can come. */
  close(): string {
    let frames = ''
    for (const block of this.waiting.splice(0)) {
      if (!isReady(block)) throw malformedResponse('The upstream sent a call without id or name.')
      frames += this.closeOpen() + this.start(block)
    }
    return frames + this.closeOpen()
  }

  private newCall(toolIndex: number): Block {
    const block = newBlock('tool_use', toolIndex)
    this.tools.set(toolIndex, block)
    const next = this.waiting.findIndex((other) => other.kind === 'tool_use' && other.toolIndex > toolIndex)
    this.waiting.splice(next === -1 ? this.waiting.length : next, 0, block)
    return block
  }

  private hold(block: Block, text: string): string {
    block.held += text
    if (block.kind === 'tool_use') block.end.read(text)
    const frames = this.advance()
    if (this.waiting.length > 0) this.limitHeld()
    return frames
  }

  private limitHeld(): void {
    let bytes = 0
    for (const { held } of this.waiting) bytes += Buffer.byteLength(held)
    if (bytes > MAXIMUM_HELD_BYTES) throw malformedResponse('The upstream mixed calls of tools in too large pieces.')
    if (bytes <= this.reportedBytes) return
    this.memory?.add(bytes - this.reportedBytes)
    this.reportedBytes = bytes
  }

  /** Opens what waits, as far as its turn has come. */
  private advance(): string {
    let frames = ''
    for (let next = this.waiting[0]; next !== undefined && isReady(next); next = this.waiting[0]) {
      if (this.open !== undefined && !mayClose(this.open)) break
      this.waiting.shift()
      frames += this.closeOpen() + this.start(next)
    }
    return frames
  }

  private start(block: Block): string {
    this.open = block
    this.index++
    if (block.kind === 'thinking') this.digest = createHash('sha256')
    if (block.kind === 'tool_use') this.hasCalls = true
    const { held } = block
    block.held = ''
    return this.frame('content_block_start', 'content_block', this.startOf(block)) + this.delta(block, held)
  }

  private startOf({ kind, id, name }: Block): object {
    if (kind === 'text') return textBlock()
    return kind === 'thinking' ? thinkingBlock('', '') : toolUseBlock(id, name, {}, this.context)
  }

  private delta(block: Block, text: string): string {
    if (text === '') return ''
    switch (block.kind) {
      case 'text':
        return this.frame('content_block_delta', 'delta', { type: 'text_delta', text })
      case 'thinking':
        this.digest?.update(text)
        return this.frame('content_block_delta', 'delta', { type: 'thinking_delta', thinking: text })
      case 'tool_use':
        return this.frame('content_block_delta', 'delta', { type: 'input_json_delta', partial_json: text })
    }
  }

  private closeOpen(): string {
    if (this.open === undefined) return ''
    const signature = this.open.kind === 'thinking' ? this.signature() : ''
    this.open.isClosed = true
    this.open = undefined
    return `${signature}event: content_block_stop\ndata: {"type":"content_block_stop","index":${this.index}}\n\n`
  }

  private signature(): string {
    const signature = signatureOf(this.digest?.digest('hex') ?? '', this.context)
    return this.frame('content_block_delta', 'delta', { type: 'signature_delta', signature })
  }

  private frame(type: string, member: string, value: object): string {
    const { index } = this
    return `event: ${type}\ndata: {"type":"${type}","index":${index},"${member}":${JSON.stringify(value)}}\n\n`
  }
}

const newBlock = (kind: Block['kind'], toolIndex = -1): Block => ({
  kind,
  toolIndex,
  id: '',
  name: '',
  held: '',
  isClosed: false,
  end: new JsonEnd(),
})

/** Whether a JSON object or array, which comes in pieces, is whole. */
class JsonEnd {
  isReached = false
  private depth = 0
  private isInText = false
  private isEscaped = false

  read(piece: string): void {
    // By index, as a call may hold a whole file.
    for (let position = 0; position < piece.length && !this.isReached; position++) this.step(piece[position])
  }

  private step(character: string | undefined): void {
    if (this.isEscaped) this.isEscaped = false
    else if (this.isInText) {
      if (character === '"') this.isInText = false
      else if (character === '\\') this.isEscaped = true
    } else if (character === '"') this.isInText = true
    else if (character === '{' || character === '[') this.depth++
    else if ((character === '}' || character === ']') && --this.depth === 0) this.isReached = true
  }
}
