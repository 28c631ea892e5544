interface Queue<Item> {
  running: number
  readonly waiting: Item[]
}

export interface KeyedQueueOptions<Item> {
  /** The name of the lane an item belongs to. */
  readonly keyOf: (item: Item) => string
  /** How many items of one lane are worked on at once. */
  readonly concurrency: () => number
  /** Whether a lane with so many items has enough to do. */
  readonly isBusy: (running: number, waiting: number) => boolean
  /** Must not reject. */
  readonly work: (item: Item) => Promise<void>
  /** Called after each item. `hasMadeRoom` = its lane had enough to do before and could take more now. */
  readonly onEnd: (hasMadeRoom: boolean) => void
}

/** Works on items, in each lane only so many at once; what one lane cannot take waits here and holds no other up. */
export class KeyedQueue<Item> {
  private readonly queues = new Map<string, Queue<Item>>()
  private readonly idleListeners: (() => void)[] = []
  private held = 0

  constructor(private readonly rules: KeyedQueueOptions<Item>) {}

  /** Items under way and waiting. */
  get size(): number {
    return this.held
  }

  add(item: Item): void {
    const name = this.rules.keyOf(item)
    const lane = this.queues.get(name) ?? { running: 0, waiting: [] }
    this.queues.set(name, lane)
    lane.waiting.push(item)
    this.held++
    this.fill(name, lane)
  }

  /** The names of the lanes that have enough to do. */
  busy(): string[] {
    return [...this.queues].filter(([, lane]) => this.isBusy(lane)).map(([name]) => name)
  }

  /** Takes away what has not begun; what is under way goes on. */
  takeWaiting(): Item[] {
    const taken = [...this.queues.values()].flatMap(({ waiting }) => waiting.splice(0))
    this.held -= taken.length
    return taken
  }

  /** Resolves once nothing is under way and nothing waits. */
  async idle(): Promise<void> {
    if (this.queues.size === 0) return
    await new Promise<void>((resolve) => {
      this.idleListeners.push(resolve)
    })
  }

  private fill(name: string, lane: Queue<Item>): void {
    while (lane.running < this.rules.concurrency()) {
      const item = lane.waiting.shift()
      if (item === undefined) break
      lane.running++
      void this.rules.work(item).then(() => {
        this.leave(name, lane)
      })
    }
  }

  private leave(name: string, lane: Queue<Item>): void {
    const wasBusy = this.isBusy(lane)
    lane.running--
    this.held--
    this.fill(name, lane)
    if (lane.running === 0) this.queues.delete(name)
    this.rules.onEnd(wasBusy && !this.isBusy(lane))
    if (this.queues.size === 0) for (const listener of this.idleListeners.splice(0)) listener()
  }

  private isBusy({ running, waiting }: Queue<Item>): boolean {
    return this.rules.isBusy(running, waiting.length)
  }
}
