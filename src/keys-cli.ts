import 'reflect-metadata'
import { loadConfigFile, parseConfig } from './config/config-loader.js'
import { processEnvironment, readEnvironment } from './config/environment.config.js'
import { readVariable } from './config/variable.js'
import { BadCommand, type Command, type DeskCommand, readCommand, USAGE } from './keys/cli/command-line.js'
import { DeskFailure, type KeyDesk } from './keys/cli/key-desk.js'
import { RemoteDesk } from './keys/cli/remote-desk.js'
import { newAdminKey, runCommand } from './keys/cli/run-command.js'
import { openStoreDesk } from './keys/cli/store-desk.js'

const NOT_UNDERSTOOD = 2

const NOT_READ =
  'Warning: neither auth.adminKey nor database.url is configured; without one of them the gateway reads no keys from its store.\n'

/** `npm run keys`: issues, shows, changes and revokes keys, in the store or at a gateway that runs. */
async function main(): Promise<void> {
  const words = process.argv.slice(2)
  if (words.includes('--help') || words.includes('-h')) {
    process.stdout.write(USAGE)
    return
  }
  const command = readCommand(words, Date.now())
  if (!needsDesk(command)) {
    process.stdout.write(`${newAdminKey()}\n`)
    return
  }
  const desk = await deskFor(command)
  try {
    process.stdout.write(await runCommand(command, desk))
  } finally {
    await desk.close()
  }
}

const needsDesk = (command: Command): command is DeskCommand => command.name !== 'admin-key'

async function deskFor({ url }: Command): Promise<KeyDesk> {
  const variables = processEnvironment()
  if (url !== undefined) {
    const { value, problem } = readVariable(variables, 'GATEWAY_ADMIN_KEY')
    if (value === undefined) throw new DeskFailure(problem ?? '--url needs the admin key in GATEWAY_ADMIN_KEY.')
    return new RemoteDesk(url, value)
  }
  const { configFile, dataDirectory } = readEnvironment(variables)
  const loaded = await loadConfigFile(configFile, variables)
  const config = loaded?.config ?? parseConfig('{}', variables)
  if (config.auth.adminKey === undefined && config.database.url === undefined) process.stderr.write(NOT_READ)
  return openStoreDesk(config, dataDirectory)
}

try {
  await main()
} catch (error) {
  const message = error instanceof Error ? error.message : String(error)
  const isNotUnderstood = error instanceof BadCommand
  process.stderr.write(isNotUnderstood ? `${message}\n\n${USAGE}` : `${message}\n`)
  process.exitCode = isNotUnderstood ? NOT_UNDERSTOOD : 1
}
