import type { Units, Usage } from '../../common/http/call.js'
import { framesOf, jsonOf } from '../../common/http/sse-frames.js'
import { reportedUsage } from '../../common/http/usage.js'

/**
 * Reads the usage of a messages stream from the two kinds of frames that carry it: `message_start`, then
 * `message_delta`, whose figures are cumulative totals and replace the earlier ones. Frames pass untouched.
 */
export class MessagesUsage {
  private units: Units = {}

  constructor(private readonly found: (usage: Usage) => void) {}

  readonly filter = (region: Buffer): Buffer => {
    if (region.includes('message_')) this.read(region)
    return region
  }

  private read(region: Buffer): void {
    for (const frame of framesOf(region)) {
      if (!/^event: ?message_(?:start|delta)\r?$/m.test(frame.toString('utf8', 0, 32))) continue
      const event = jsonOf(frame)
      const message = event?.['message'] as Record<string, unknown> | undefined
      const usage = reportedUsage(event?.['usage'] ?? message?.['usage'])
      if (usage === undefined) continue
      this.units = { ...this.units, ...usage.units }
      this.found({ units: this.units, estimated: false })
    }
  }
}
