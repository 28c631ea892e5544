import { Injectable } from '@nestjs/common'

const REMEMBERED_TASKS = 10_000

/** Which channel knew a task when it was last asked for. Only a hint where to ask first: nobody's permission follows. */
@Injectable()
export class KnownChannels {
  /** In order of use: the first was not asked for the longest. */
  private readonly channelIds = new Map<string, string>()

  find(taskId: string): string | undefined {
    return this.channelIds.get(taskId)
  }

  remember(taskId: string, channelId: string): void {
    this.channelIds.delete(taskId)
    this.channelIds.set(taskId, channelId)
    if (this.channelIds.size <= REMEMBERED_TASKS) return
    const [oldest] = this.channelIds.keys()
    if (oldest !== undefined) this.channelIds.delete(oldest)
  }
}
