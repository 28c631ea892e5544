import type { Addition, LimitWindows, WindowState } from './limit-windows.js'

/** Windows that all replicas share, and those of this process for as long as the others cannot be reached. */
export class SharedWindows implements LimitWindows {
  constructor(
    private readonly shared: LimitWindows,
    private readonly local: LimitWindows,
  ) {}

  async add(key: string, points: number, limit: number): Promise<Addition | undefined> {
    return (await this.shared.add(key, points, limit)) ?? (await this.local.add(key, points, limit))
  }

  async debit(key: string, points: number, limit: number): Promise<WindowState | undefined> {
    return (await this.shared.debit(key, points, limit)) ?? (await this.local.debit(key, points, limit))
  }

  async peek(key: string, limit: number): Promise<WindowState | undefined> {
    return (await this.shared.peek(key, limit)) ?? (await this.local.peek(key, limit))
  }
}
