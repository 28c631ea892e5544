import 'reflect-metadata'
import { InvalidCommandError, UnknownCommandError } from './admin/cli/key-command.js'
import { runStoreCommand } from './admin/cli/run-store-command.js'
import { StoreDownloadFailure } from './admin/cli/store-client.js'
import { readStoreCommand, STORE_USAGE } from './admin/cli/store-command.js'
import { PROVIDERS } from './app/providers.js'
import { processEnvironment, readEnvironment, readVariable, type Variables } from './config/environment.js'
import { loadConfigFile, parseConfig } from './config/load-config.js'
import { keepFilesPrivate } from './storage/data-lock.js'
import type { StorePlace } from './storage/store-place.js'

const NOT_UNDERSTOOD = 2
const PROGRESS_MS = 1000

/** `npm run store`: copies, backs up and restores stores. */
async function main(): Promise<void> {
  const words = process.argv.slice(2)
  if (words[0] === 'help' || words.includes('--help') || words.includes('-h')) {
    process.stdout.write(STORE_USAGE)
    return
  }
  keepFilesPrivate()
  const command = readStoreCommand(words)
  const variables = processEnvironment()
  const text = await runStoreCommand(command, {
    configured: await configuredStore(variables),
    adminKey: () => adminKeyOf(variables),
    onProgress: progressPrinter(),
  })
  process.stdout.write(text)
}

async function configuredStore(variables: Variables): Promise<StorePlace> {
  const { configFile, dataDirectory } = readEnvironment(variables)
  const loaded = await loadConfigFile(configFile, variables, PROVIDERS)
  const { url } = (loaded?.config ?? parseConfig('{}', variables, PROVIDERS)).database
  return url === undefined ? { directory: dataDirectory } : { url }
}

function adminKeyOf(variables: Variables): string {
  const { value, problem } = readVariable(variables, 'GATEWAY_ADMIN_KEY')
  if (value === undefined) throw new StoreDownloadFailure(problem ?? '--url needs the admin key in GATEWAY_ADMIN_KEY.')
  return value
}

/** A line a second. */
function progressPrinter(): (table: string, rows: number, isCheck: boolean) => void {
  let nextAtMs = performance.now() + PROGRESS_MS
  return (table, rows, isCheck) => {
    if (performance.now() < nextAtMs) return
    nextAtMs = performance.now() + PROGRESS_MS
    process.stderr.write(`${isCheck ? 'checking ' : ''}${table}: ${rows} rows\n`)
  }
}

try {
  await main()
} catch (error) {
  const message = error instanceof Error ? error.message : String(error)
  process.stderr.write(`${message}\n`)
  if (error instanceof UnknownCommandError) process.stderr.write(`\n${STORE_USAGE}`)
  else if (error instanceof InvalidCommandError) process.stderr.write('Usage: npm run store -- --help\n')
  process.exitCode = error instanceof InvalidCommandError ? NOT_UNDERSTOOD : 1
}
