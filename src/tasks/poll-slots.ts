import type { Task } from './task.js'

interface Slots {
  running: number
  readonly waiting: Task[]
}

/** Runs polls, on each channel only so many at once; what one channel cannot take holds no other up. */
export class PollSlots {
  private readonly channels = new Map<string, Slots>()
  private readonly idleListeners: (() => void)[] = []

  /**
   * `poll` must not reject. `onRoom` is called when a channel that had enough to do could take more.
   */
  constructor(
    private readonly perChannel: () => number,
    private readonly poll: (task: Task) => Promise<void>,
    private readonly onRoom: () => void,
  ) {}

  add(task: Task): void {
    const slots = this.channels.get(task.channelId) ?? { running: 0, waiting: [] }
    this.channels.set(task.channelId, slots)
    slots.waiting.push(task)
    this.fill(task.channelId, slots)
  }

  /** Channels to claim nothing for: something waits there, or more than half of their slots are taken. */
  busyChannels(): string[] {
    return [...this.channels].filter(([, slots]) => this.isBusy(slots)).map(([channelId]) => channelId)
  }

  /** Takes away what has not begun. */
  takeWaiting(): Task[] {
    return [...this.channels.values()].flatMap(({ waiting }) => waiting.splice(0))
  }

  /** Resolves once nothing runs. */
  async idle(): Promise<void> {
    if (this.channels.size === 0) return
    await new Promise<void>((resolve) => {
      this.idleListeners.push(resolve)
    })
  }

  private fill(channelId: string, slots: Slots): void {
    while (slots.running < this.perChannel()) {
      const task = slots.waiting.shift()
      if (task === undefined) break
      slots.running++
      void this.poll(task).then(() => {
        this.leave(channelId, slots)
      })
    }
  }

  private leave(channelId: string, slots: Slots): void {
    const wasBusy = this.isBusy(slots)
    slots.running--
    this.fill(channelId, slots)
    if (slots.running === 0) this.channels.delete(channelId)
    if (wasBusy && !this.isBusy(slots)) this.onRoom()
    if (this.channels.size === 0) for (const listener of this.idleListeners.splice(0)) listener()
  }

  private isBusy({ running, waiting }: Slots): boolean {
    return waiting.length > 0 || running * 2 > this.perChannel()
  }
}
