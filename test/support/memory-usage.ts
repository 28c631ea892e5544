import { GatewayError } from '../../src/core/gateway-error.js'
import type { UsageRecord } from '../../src/core/usage-record.js'
import type { UsageSum } from '../../src/usage/usage-usage-reports.js'
import { UsageRepository } from '../../src/usage/usage.repository.js'

export const away = (): GatewayError => new GatewayError('overloaded', 'The database cannot be reached.')

/** A store that takes rows, or fails as it is told to. */
export class MemoryUsage extends UsageRepository {
  readonly rows = new Map<string, UsageRecord>()
  readonly batches: (readonly UsageRecord[])[] = []
  /** Asked before each batch is taken: what it returns is thrown. */
  before: (batch: readonly UsageRecord[]) => unknown = () => undefined
  /** The same once it has been taken: an answer that is lost. */
  after: (batch: readonly UsageRecord[]) => unknown = () => undefined
  opened = 0
  whenOpened: () => void = () => undefined

  override open(): Promise<void> {
    this.opened++
    this.whenOpened()
    return Promise.resolve()
  }

  override async insert(records: readonly UsageRecord[]): Promise<void> {
    this.batches.push(records)
    await failWith(this.before(records))
    for (const record of records) if (!this.rows.has(record.id)) this.rows.set(record.id, record)
    await failWith(this.after(records))
  }

  override sums(): Promise<readonly UsageSum[]> {
    return Promise.resolve([])
  }

  override list(): Promise<readonly UsageRecord[]> {
    return Promise.resolve([...this.rows.values()])
  }

  override prune(): Promise<number> {
    return Promise.resolve(0)
  }
}

/** A promise is waited for, an error is thrown. */
async function failWith(failure: unknown): Promise<void> {
  const error = await failure
  if (error instanceof Error) throw error
}
