import 'reflect-metadata'
import { PROVIDERS } from './app/providers.js'
import { processEnvironment, readEnvironment } from './config/environment.js'
import { loadConfigFile, parseConfig } from './config/load-config.js'
import { createLogging } from './observability/logger.js'
import { Readiness } from './observability/readiness.js'
import { keepFilesPrivate } from './storage/data-lock.js'
import { createDatabase } from './storage/storage.module.js'

/** `npm run migrate`: brings the store to this version without starting the gateway; what is there already is left alone. */
async function main(): Promise<void> {
  keepFilesPrivate()
  const variables = processEnvironment()
  const { configFile, dataDirectory } = readEnvironment(variables)
  const loaded = await loadConfigFile(configFile, variables, PROVIDERS)
  const config = loaded?.config ?? parseConfig('{}', variables, PROVIDERS)
  const { logger } = createLogging(config.logging.level)
  const database = createDatabase(config.database, dataDirectory, new Readiness(), logger)
  try {
    await database.open()
    process.stdout.write('The store is up to date.\n')
  } finally {
    await database.onApplicationShutdown()
  }
}

try {
  await main()
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}
