import type { Usage } from '../core/request-context.js'
import { framesOf, jsonOf } from '../core/sse.js'
import { reportedUsage } from '../core/usage.js'

/**
 * Reads the usage out of the one frame that ends an audio event stream (`speech.audio.done`, `transcript.text.done`);
 * all other frames pass unparsed, and every frame passes untouched.
 */
export class DoneUsage {
  private readonly mark: string

  constructor(
    eventType: string,
    private readonly found: (usage: Usage) => void,
  ) {
    this.mark = `${eventType}"`
  }

  readonly filter = (region: Buffer): Buffer => {
    if (region.includes(this.mark)) this.read(region)
    return region
  }

  private read(region: Buffer): void {
    for (const frame of framesOf(region)) {
      const usage = frame.includes(this.mark) ? reportedUsage(jsonOf(frame)?.['usage']) : undefined
      if (usage !== undefined) this.found(usage)
    }
  }
}
