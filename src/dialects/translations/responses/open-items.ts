import {
  callItem,
  type CalledTool,
  callStatus,
  type ItemStatus,
  messageItem,
  isWithoutArguments,
  NO_ARGUMENTS,
  type OutputPart,
  partObject,
  reasoningItem,
  summaryPart,
} from './output-items.js'

/** Frames of a response's event stream: numbered from 0, without gaps. */
export class EventFrames {
  private sequenceNumber = 0

  /** `members`: those of the event beside its type and number, as JSON text. */
  frame(type: string, members: string): string {
    return `event: ${type}\ndata: {"type":"${type}","sequence_number":${this.sequenceNumber++},${members}}\n\n`
  }
}

/** Where an item stands in the output. */
export interface ItemPlace {
  readonly id: string
  readonly outputIndex: number
}

/** An item of the output that is being made. */
abstract class OpenItem {
  /** Members of every event of the item and its parts. */
  protected readonly place: string
  private readonly index: string

  constructor(
    protected readonly frames: EventFrames,
    protected readonly id: string,
    outputIndex: number,
  ) {
    this.index = `"output_index":${outputIndex}`
    this.place = `${this.index},"item_id":"${id}"`
  }

  /** The frames by which the item begins. */
  begun(): string {
    return this.itemFrame('added', JSON.stringify(this.item('in_progress')))
  }

  /** The frames by which it ends, and the item. `status`: incomplete when the answer was cut in it. */
  ended(status: ItemStatus): { readonly frames: string; readonly item: string } {
    const parts = this.partsEnded(status)
    const item = JSON.stringify(this.item(status))
    return { frames: parts + this.itemFrame('done', item), item }
  }

  /** The item as it stands. */
  abstract item(status: ItemStatus): object

  protected abstract partsEnded(status: ItemStatus): string

  private itemFrame(event: 'added' | 'done', item: string): string {
    return this.frames.frame(`response.output_item.${event}`, `${this.index},"item":${item}`)
  }
}

/** What the model says, in parts. */
export class OpenMessage extends OpenItem {
  private readonly parts: OutputPart[] = []
  private kind: OutputPart['type'] | undefined
  private text = ''
  /** Members of the events of the open part. */
  private partPlace = ''

  constructor(frames: EventFrames, { id, outputIndex }: ItemPlace) {
    super(frames, id, outputIndex)
  }

  textDelta(delta: string): string {
    const before = this.opened('output_text')
    this.text += delta
    return before + this.frames.frame('response.output_text.delta', this.deltaMembers(delta) + NO_LOGPROBS)
  }

  refusalDelta(delta: string): string {
    const before = this.opened('refusal')
    this.text += delta
    return before + this.frames.frame('response.refusal.delta', this.deltaMembers(delta))
  }

  /** What comes next is a part of its own. */
  partEnded(): string {
    const { kind } = this
    if (kind === undefined) return ''
    const part = partOf(kind, this.text)
    this.parts.push(part)
    this.kind = undefined
    const text = JSON.stringify(this.text)
    const done =
      kind === 'refusal'
        ? this.frames.frame('response.refusal.done', `${this.partPlace},"refusal":${text}`)
        : this.frames.frame('response.output_text.done', `${this.partPlace},"text":${text}${NO_LOGPROBS}`)
    return done + this.partFrame('done', part)
  }

  override item(status: ItemStatus): object {
    const open = this.kind === undefined ? [] : [partOf(this.kind, this.text)]
    return messageItem(this.id, status, [...this.parts, ...open])
  }

  protected override partsEnded(): string {
    return this.partEnded()
  }

  private deltaMembers(delta: string): string {
    return `${this.partPlace},"delta":${JSON.stringify(delta)}`
  }

  private opened(kind: OutputPart['type']): string {
    if (this.kind === kind) return ''
    const before = this.partEnded()
    this.kind = kind
    this.text = ''
    this.partPlace = `${this.place},"content_index":${this.parts.length}`
    return before + this.partFrame('added', partOf(kind, ''))
  }

  private partFrame(event: 'added' | 'done', part: OutputPart): string {
    const members = `${this.partPlace},"part":${JSON.stringify(partObject(part))}`
    return this.frames.frame(`response.content_part.${event}`, members)
  }
}

const NO_LOGPROBS = ',"logprobs":[]'

const partOf = (type: OutputPart['type'], text: string): OutputPart =>
  type === 'refusal' ? { type, refusal: text } : { type, text }

/** What the model thinks: shown as summaries, or not at all. */
export class OpenReasoning extends OpenItem {
  private readonly summaries: string[] = []
  private text: string | undefined
  private summaryPlace = ''

  /** `seal`: asked once, when the item ends; what it returns goes with the item. */
  constructor(
    frames: EventFrames,
    { id, outputIndex }: ItemPlace,
    private readonly seal: () => string | undefined,
  ) {
    super(frames, id, outputIndex)
  }

  summaryDelta(delta: string): string {
    let before = ''
    if (this.text === undefined) {
      this.text = ''
      this.summaryPlace = `${this.place},"summary_index":${this.summaries.length}`
      before = this.partFrame('added', '')
    }
    this.text += delta
    const members = `${this.summaryPlace},"delta":${JSON.stringify(delta)}`
    return before + this.frames.frame('response.reasoning_summary_text.delta', members)
  }

  /** What comes next is a summary of its own. */
  summaryEnded(): string {
    const { text } = this
    if (text === undefined) return ''
    this.summaries.push(text)
    this.text = undefined
    const members = `${this.summaryPlace},"text":${JSON.stringify(text)}`
    return this.frames.frame('response.reasoning_summary_text.done', members) + this.partFrame('done', text)
  }

  override item(status: ItemStatus): object {
    const sealed = status === 'in_progress' ? undefined : this.seal()
    return reasoningItem(this.id, this.text === undefined ? this.summaries : [...this.summaries, this.text], sealed)
  }

  protected override partsEnded(): string {
    return this.summaryEnded()
  }

  private partFrame(event: 'added' | 'done', text: string): string {
    const members = `${this.summaryPlace},"part":${JSON.stringify(summaryPart(text))}`
    return this.frames.frame(`response.reasoning_summary_part.${event}`, members)
  }
}

/** A call of one of the caller's tools. */
export class OpenCall extends OpenItem {
  private text = ''
  private readonly event: string

  constructor(
    frames: EventFrames,
    { id, outputIndex }: ItemPlace,
    private readonly tool: CalledTool,
  ) {
    super(frames, id, outputIndex)
    this.event = tool.isCustom ? 'response.custom_tool_call_input' : 'response.function_call_arguments'
  }

  delta(delta: string): string {
    this.text += delta
    return this.frames.frame(`${this.event}.delta`, `${this.place},"delta":${JSON.stringify(delta)}`)
  }

  override item(status: ItemStatus): object {
    const { tool, text } = this
    return callItem(this.id, callStatus(tool, text, status), tool, text)
  }

  protected override partsEnded(status: ItemStatus): string {
    const { isCustom, name } = this.tool
    const before = isWithoutArguments(this.tool, this.text, status) ? this.delta(NO_ARGUMENTS) : ''
    const text = JSON.stringify(this.text)
    const members = isCustom ? `"input":${text}` : `"arguments":${text},"name":${JSON.stringify(name)}`
    return before + this.frames.frame(`${this.event}.done`, `${this.place},${members}`)
  }
}
