import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from '@jest/globals'
import { type BeforeApplicationShutdown, Injectable, Module } from '@nestjs/common'
import { Test } from '@nestjs/testing'
import { sql } from 'kysely'
import { dataDirectory, nameDataDirectory, STORE_START_MS } from '../../test/support/stores.js'
import { ConfigurationModule } from '../config/config.module.js'
import { parseConfig } from '../config/load-config.js'
import { createLogging } from '../observability/logger.js'
import { ObservabilityModule } from '../observability/observability.module.js'
import { Readiness } from '../observability/readiness.js'
import { CallEndings } from '../observability/request-hooks.js'
import { Database } from './database.js'
import { DatabaseModule } from './database.module.js'

/** A loop that has one more thing to write when it is told to stop. */
@Injectable()
class LastWrite implements BeforeApplicationShutdown {
  written: unknown

  constructor(private readonly database: Database) {}

  async beforeApplicationShutdown(): Promise<void> {
    const { rows } = await this.database.run((queries) => sql`select 'in time' as written`.execute(queries))
    this.written = rows
  }
}

@Module({ providers: [LastWrite] })
class DistantModule {}

afterEach(() => {
  nameDataDirectory(undefined)
})

describe('DatabaseModule', () => {
  it(
    'gives the store to modules that import nothing, opens it for whoever asks, and closes it last',
    async () => {
      const directory = await dataDirectory()
      nameDataDirectory(directory)
      const nest = await Test.createTestingModule({
        imports: [
          ConfigurationModule.forRoot({ config: parseConfig('{}', {}) }),
          ObservabilityModule.forRoot(new Readiness(), new CallEndings(), createLogging('silent').logger),
          DatabaseModule,
          DistantModule,
        ],
      }).compile()
      await nest.init()
      const owner = join(directory, 'OWNER')
      expect(existsSync(owner)).toBe(false)
      await nest.get(Database).open()
      expect(existsSync(owner)).toBe(true)
      const loop = nest.get(LastWrite, { strict: false })
      await nest.close()
      expect(loop.written).toEqual([{ written: 'in time' }])
      expect(existsSync(owner)).toBe(false)
      await rm(directory, { recursive: true })
    },
    STORE_START_MS,
  )
})
