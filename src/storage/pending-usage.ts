import { existsSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Inject, Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { type Environment, environmentConfig } from '../config/environment.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { syncPath } from './file-sync.js'

/**
 * The file beside an embedded store that says that bills of background responses may be open in it. Without it a gateway whose
 * configuration needs no store would not open it, and so would not ask for their ends.
 */
const pathIn = (directory: string): string => join(directory, 'PENDING-USAGE')

/** Resolves when the file is on the disk. */
export async function markPendingUsage(directory: string): Promise<void> {
  const path = pathIn(directory)
  await writeFile(path, '')
  await syncPath(path)
  await syncPath(directory)
}

/** Keeps the file beside the embedded store while this gateway may have open bills. */
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
    return pathIn(this.environment.dataDirectory)
  }
}
