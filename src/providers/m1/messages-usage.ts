import type { Units, Usage, UsageMeter } from '../../core/request-context.js'
import { framesOf, jsonOf } from '../../core/sse.js'
import { reportedUsage } from '../../core/usage.js'
import type { FrameCounter } from '../../upstream/sse-relay.js'

const EVENT = /^event: ?message_(start|delta)\r?$/m

/**
 * Reads the usage of a messages stream from the two kinds of frames that carry it. `message_start` knows the input;
 * its output is a beginning, so that until `message_delta` comes, whose figures are totals and replace the earlier
 * ones, the pieces of the answer are counted in its place, one token for each. Frames pass untouched.
 */
export class MessagesUsage implements UsageMeter {
  private units: Units | undefined

  constructor(
    private readonly deltas: Pick<FrameCounter, 'count'>,
    private readonly found: (usage: Usage) => void,
  ) {}

  readonly filter = (region: Buffer): Buffer => {
    if (region.includes('message_')) this.read(region)
    return region
  }

  usageSoFar(): Usage | undefined {
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
