#!/usr/bin/env node
import { readFileSync } from 'node:fs'

/** The commands of the package, each with its module. */
const COMMANDS = { keys: 'keys-cli.js', store: 'store-cli.js', migrate: 'migrate.js' }

const HELP = `Usage: multi-model-gateway [command]

Without a command the gateway starts: with the configuration ./gateway.yaml (or the file that GATEWAY_CONFIG names),
without one as a sandbox, in which every upstream is simulated. PORT and HOST choose the address.

Commands:
  keys      issue, list, change and revoke keys
  store     copy, back up and restore the store
  migrate   bring the database up to date

Options:
  --help, --version
`

/** As `npm start` has it: more memory for new objects, of which every request makes many, halves the work of the collector. */
const MEMORY_FLAG = '--max-semi-space-size'

/**
 * Node takes it at its start alone, and the line at the top cannot hand it over: `env` of BusyBox (Alpine Linux) has no `-S`. Where
 * Node can (from 22.15 on, not on Windows), the process begins anew under its own id; elsewhere it goes on as it is.
 */
function beginWithMemory() {
  const flags = [...process.execArgv, process.env.NODE_OPTIONS ?? '']
  if (process.platform === 'win32' || flags.some((flag) => flag.includes(MEMORY_FLAG))) return
  process.execve?.(process.execPath, [process.execPath, `${MEMORY_FLAG}=64`, ...process.execArgv, process.argv[1]])
}

const [name] = process.argv.slice(2)

if (name === undefined) {
  beginWithMemory()
  await import('../dist/main.js')
} else if (Object.hasOwn(COMMANDS, name)) {
  // Commands read their own arguments.
  process.argv.splice(2, 1)
  await import(`../dist/${COMMANDS[name]}`)
} else if (name === '--help' || name === '-h') process.stdout.write(HELP)
else if (name === '--version') {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  process.stdout.write(`${version}\n`)
} else {
  process.stderr.write(`multi-model-gateway: unknown argument ${JSON.stringify(name)}\n\n${HELP}`)
  process.exitCode = 2
}
