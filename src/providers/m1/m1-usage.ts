import type { Units, Usage, UsageEstimator } from '../../core/request-context.js'
import { framesOf, jsonOf } from '../../core/sse.js'
import { tokensOf } from '../../core/token-counter.js'
import { reportedUsage } from '../../core/usage.js'
import { isRecord } from '../../core/validation-rules.js'
import type { FrameCounter } from '../../upstream/sse-relay.js'

const EVENT = /^event: ?message_(start|delta)\r?$/m

/**
 * Reads the usage of a messages stream from the two kinds of frames that carry it. `message_start` knows the input;
 * its output is a beginning, so that until `message_delta` comes, whose figures are totals and replace the earlier
 * ones, the pieces of the answer are counted in its place, one token for each. Frames pass untouched.
 */
export class MessagesUsage implements UsageEstimator {
  private units: Units | undefined

  constructor(
    private readonly deltas: Pick<FrameCounter, 'count'>,
    private readonly found: (usage: Usage) => void,
  ) {}

  readonly filter = (region: Buffer): Buffer => {
    if (region.includes('message_')) this.read(region)
    return region
  }

  estimate(): Usage | undefined {
    if (this.units === undefined) return undefined
    const { output_tokens: reported } = this.units
    const begun = typeof reported === 'number' ? reported : 0
    return { units: { ...this.units, output_tokens: Math.max(begun, this.deltas.count) }, estimated: true }
  }

  private read(region: Buffer): void {
    for (const frame of framesOf(region)) {
      const kind = EVENT.exec(frame.toString('utf8', 0, 32))?.[1]
      if (kind === undefined) continue
      const event = jsonOf(frame)
      const message = event?.['message'] as Record<string, unknown> | undefined
      const usage = reportedUsage(event?.['usage'] ?? message?.['usage'])
      if (usage === undefined) continue
      this.units = { ...this.units, ...usage.units }
      if (kind === 'delta') this.found({ units: this.units, estimated: false })
    }
  }
}

const TOKENS_PER_MESSAGE = 4

type Fields = Readonly<Record<string, unknown>>

/**
 * What a messages call probably took whose upstream says nothing of it, though its dialect asks for that: texts and
 * tools of the request, and whatever `said` has counted of the answer; nothing of an answer that nobody counts. Nothing
 * is looked at before somebody asks.
 */
export class MessagesEstimate implements UsageEstimator {
  constructor(
    private readonly request: object,
    /** Absent where the answer is too large to be held: 0 would say that there was none. */
    private readonly text?: Pick<FrameCounter, 'count'>,
    /** Asked first: it may know more. */
    private readonly reported?: UsageEstimator,
  ) {}

  estimate(): Usage {
    const known = this.reported?.estimate()
    if (known !== undefined) return known
    const { messages, system, tools } = this.request as Fields
    const input = tokensIn(system) + (tools == null ? 0 : tokensOf(JSON.stringify(tools))) + tokensInAll(messages)
    const output = this.text === undefined ? {} : { output_tokens: this.text.count }
    return { units: { input_tokens: input, ...output }, estimated: true }
  }

  /** Of a stream its pieces, which are counted anyway. An answer that came whole is looked at for no figure beside its own. */
  countedUnits(): Units | undefined {
    return this.text === undefined ? undefined : { output_tokens: this.text.count }
  }
}

/** Counts a whole answer, when that is asked for: roughly the tokens of its blocks. 0 for what is no message. */
export class WholeMessage {
  constructor(private readonly body: Buffer) {}

  get count(): number {
    try {
      const value: unknown = JSON.parse(this.body.toString())
      return isRecord(value) ? tokensIn(value['content']) : 0
    } catch {
      return 0
    }
  }
}

function tokensInAll(messages: unknown): number {
  if (!Array.isArray(messages)) return 0
  return messages.reduce<number>(
    (sum, message: unknown) => sum + TOKENS_PER_MESSAGE + (isRecord(message) ? tokensIn(message['content']) : 0),
    0,
  )
}

/** Of a text, or of blocks: their texts, thoughts, calls of tools and what these have answered; no pictures. */
function tokensIn(content: unknown): number {
  if (typeof content === 'string') return tokensOf(content)
  if (!Array.isArray(content)) return 0
  return content.reduce<number>((sum, block: unknown) => sum + (isRecord(block) ? tokensOfBlock(block) : 0), 0)
}

function tokensOfBlock({ text, thinking, input, content }: Fields): number {
  const words = tokensIn(text) + tokensIn(thinking) + tokensIn(content)
  return words + (isRecord(input) ? tokensOf(JSON.stringify(input)) : 0)
}
