import 'reflect-metadata'
import { KeyAdminFailure, type KeyAdmin, HttpKeyAdmin } from './admin/cli/key-client.js'
import {
  InvalidCommandError,
  type Command,
  type KeyAdminCommand,
  readCommand,
  UnknownCommandError,
  USAGE,
} from './admin/cli/key-command.js'
import { newAdminKey, runCommand } from './admin/cli/run-key-command.js'
import { processEnvironment, readEnvironment, readVariable } from './config/environment.js'

const NOT_UNDERSTOOD = 2

const HELP = 'Usage: npm run keys -- --help\n'

const NOT_READ =
  'Warning: neither auth.adminKey nor database.url is configured; without one of them the gateway reads no keys from its store.\n'

/** `npm run keys`: issues, shows, changes and revokes keys, in the store or at a gateway that runs. */
async function main(): Promise<void> {
  const words = process.argv.slice(2)
  if (words[0] === 'help' || words.includes('--help') || words.includes('-h')) {
    process.stdout.write(USAGE)
    return
  }
  const command = readCommand(words, Date.now())
  if (!needsKeyAdmin(command)) {
    process.stdout.write(`${newAdminKey()}\n`)
    return
  }
  const keyAdmin = await keyAdminFor(command)
  try {
    process.stdout.write(await runCommand(command, keyAdmin))
  } finally {
    await keyAdmin.close()
  }
}

const needsKeyAdmin = (command: Command): command is KeyAdminCommand => command.name !== 'admin-key'

async function keyAdminFor({ url }: Command): Promise<KeyAdmin> {
  const variables = processEnvironment()
  if (url !== undefined) {
    const { value, problem } = readVariable(variables, 'GATEWAY_ADMIN_KEY')
    if (value === undefined) throw new KeyAdminFailure(problem ?? '--url needs the admin key in GATEWAY_ADMIN_KEY.')
    return new HttpKeyAdmin(url, value)
  }
  return storeKeyAdmin(variables)
}

/**
 * Imported here: `--help` and `--url` need neither providers nor the store, whose loading takes a quarter of the command's time.
 */
async function storeKeyAdmin(variables: NodeJS.ProcessEnv): Promise<KeyAdmin> {
  const { keepFilesPrivate } = await import('./storage/data-lock.js')
  keepFilesPrivate()
  const { loadConfigFile, parseConfig } = await import('./config/load-config.js')
  const { openStoreKeyAdmin } = await import('./admin/cli/key-store.js')
  const { PROVIDERS } = await import('./app/providers.js')
  const { configFile, configFileNamed, dataDirectory } = readEnvironment(variables)
  const loaded = await loadConfigFile(configFile, variables, PROVIDERS)
  // Its store would be another one than the gateway's.
  if (loaded === undefined && configFileNamed)
    throw new KeyAdminFailure('The file that GATEWAY_CONFIG names does not exist.')
  const config = loaded?.config ?? parseConfig('{}', variables, PROVIDERS)
  if (config.auth.adminKey === undefined && config.database.url === undefined) process.stderr.write(NOT_READ)
  return openStoreKeyAdmin(config, dataDirectory)
}

try {
  await main()
} catch (error) {
  const message = error instanceof Error ? error.message : String(error)
  process.stderr.write(`${message}\n`)
  if (error instanceof UnknownCommandError) process.stderr.write(`\n${USAGE}`)
  else if (error instanceof InvalidCommandError) process.stderr.write(HELP)
  process.exitCode = error instanceof InvalidCommandError ? NOT_UNDERSTOOD : 1
}
