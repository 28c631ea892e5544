import { MemoryWindows } from '../../src/limits/counters.js'
import { type LimitLeases, LocalLeases } from '../../src/limits/limit-leases.js'
import type { Addition, LimitWindows, WindowHome, WindowState } from '../../src/limits/limit-windows.js'

/** The windows of a process, whose answers come a little later, as those of Redis do. */
export class AwaitedWindows implements LimitWindows, WindowHome {
  private readonly windows = new MemoryWindows()

  async add(...asked: Parameters<LimitWindows['add']>): Promise<Addition | undefined> {
    await Promise.resolve()
    return { ...this.windows.add(...asked), home: this }
  }

  async debit(...asked: Parameters<LimitWindows['debit']>): Promise<WindowState | undefined> {
    await Promise.resolve()
    return this.windows.debit(...asked)
  }

  async giveBack(...asked: Parameters<WindowHome['giveBack']>): Promise<WindowState | undefined> {
    await Promise.resolve()
    return this.windows.giveBack(...asked)
  }

  async peek(...asked: Parameters<LimitWindows['peek']>): Promise<WindowState | undefined> {
    await Promise.resolve()
    return this.windows.peek(...asked)
  }
}

/** The same for what is under way at one time. */
export class AwaitedLeases implements LimitLeases {
  private readonly leases = new LocalLeases()

  async take(...asked: Parameters<LimitLeases['take']>): Promise<boolean> {
    await Promise.resolve()
    return this.leases.take(...asked)
  }

  release(key: string, id: string): void {
    this.leases.release(key, id)
  }

  async count(key: string): Promise<number> {
    await Promise.resolve()
    return this.leases.count(key)
  }
}
