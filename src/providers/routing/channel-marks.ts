import { Injectable } from '@nestjs/common'

/**
 * Channels that failed by their own fault a moment ago. A marked channel is tried after the others, never left out:
 * it may be the last one that works.
 */
@Injectable()
export class ChannelMarks {
  private readonly markedUntilMs = new Map<string, number>()

  mark(channelId: string, durationMs: number): void {
    this.markedUntilMs.set(channelId, performance.now() + durationMs)
  }

  clear(channelId: string): void {
    this.markedUntilMs.delete(channelId)
  }

  isMarked(channelId: string): boolean {
    const until = this.markedUntilMs.get(channelId)
    return until !== undefined && until > performance.now()
  }
}
