import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { Inject, Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { type Environment, environmentConfig } from '../config/environment.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { markPendingUsage, pendingUsagePath } from '../storage/pending-usage.js'

/** Keeps the mark of open bills beside the embedded store while this gateway may have some. */
@Injectable()
export class PendingUsageMarker {
  private writing: Promise<void> | undefined

  constructor(
    private readonly store: ConfigStore,
    @Inject(environmentConfig.KEY) private readonly environment: Pick<Environment, 'dataDirectory'>,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  get isThere(): boolean {
    return this.isEmbedded && existsSync(this.path)
  }

  /** Resolves when it is on the disk. Never rejects: without it a bill waits until the store is used. */
  async write(): Promise<void> {
    if (this.isEmbedded) await (this.writing ??= this.writeFile())
  }

  /** Called when no bill is open and none can be opened any more. Never rejects. */
  async remove(): Promise<void> {
    if (this.isEmbedded) await rm(this.path, { force: true }).catch(() => undefined)
  }

  private async writeFile(): Promise<void> {
    try {
      await markPendingUsage(this.environment.dataDirectory)
    } catch (error) {
      this.writing = undefined
      this.logger.warn(
        { err: error },
        'pending usage could not be marked: after a restart it waits until the store is used',
      )
    }
  }

  private get isEmbedded(): boolean {
    return this.store.current.database.url === undefined
  }

  private get path(): string {
    return pendingUsagePath(this.environment.dataDirectory)
  }
}
