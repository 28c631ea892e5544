interface Queue<Item> {
  running: number
  readonly waiting: Item[]
}

export interface KeyedQueueOptions<Item> {
  /** The key of the queue that an item belongs to. */
  readonly keyOf: (item: Item) => string
  /** How many items of one key run at once. */
  readonly concurrency: () => number
  /** Whether a queue in this state should get no further items. */
  readonly isBusy: (running: number, waiting: number) => boolean
  /** Must not reject. */
  readonly run: (item: Item) => Promise<void>
  /** Called after each item. `hasMadeRoom` = its queue was busy before and is not any more. */
  readonly onEnd: (hasMadeRoom: boolean) => void
}

/** Runs items, a limited number per key at once; waiting items of one key do not delay other keys. */
export class KeyedQueue<Item> {
  private readonly queues = new Map<string, Queue<Item>>()
  private readonly idleListeners: (() => void)[] = []
  private held = 0

  constructor(private readonly options: KeyedQueueOptions<Item>) {}

  /** Items running and waiting. */
  get size(): number {
    return this.held
  }

  add(item: Item): void {
    const key = this.options.keyOf(item)
    const queue = this.queues.get(key) ?? { running: 0, waiting: [] }
    this.queues.set(key, queue)
    queue.waiting.push(item)
    this.held++
    this.fill(key, queue)
  }

  /** The keys of busy queues. */
  busy(): string[] {
    return [...this.queues].filter(([, queue]) => this.isBusy(queue)).map(([key]) => key)
  }

  /** Removes and returns the waiting items; running ones continue. */
  takeWaiting(): Item[] {
    const taken = [...this.queues.values()].flatMap(({ waiting }) => waiting.splice(0))
    this.held -= taken.length
    return taken
  }

  /** Resolves once nothing is running or waiting. */
  async idle(): Promise<void> {
    if (this.queues.size === 0) return
    await new Promise<void>((resolve) => {
      this.idleListeners.push(resolve)
    })
  }

  private fill(key: string, queue: Queue<Item>): void {
    while (queue.running < this.options.concurrency()) {
      const item = queue.waiting.shift()
      if (item === undefined) break
      queue.running++
      void this.options.run(item).then(() => {
        this.onItemEnd(key, queue)
      })
    }
  }

  private onItemEnd(key: string, queue: Queue<Item>): void {
    const wasBusy = this.isBusy(queue)
    queue.running--
    this.held--
    this.fill(key, queue)
    if (queue.running === 0) this.queues.delete(key)
    this.options.onEnd(wasBusy && !this.isBusy(queue))
    if (this.queues.size === 0) for (const listener of this.idleListeners.splice(0)) listener()
  }

  private isBusy({ running, waiting }: Queue<Item>): boolean {
    return this.options.isBusy(running, waiting.length)
  }
}
