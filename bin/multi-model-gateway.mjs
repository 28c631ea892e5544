#!/usr/bin/env -S node --max-semi-space-size=64
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

const [name] = process.argv.slice(2)

if (name === undefined) await import('../dist/main.js')
else if (Object.hasOwn(COMMANDS, name)) {
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
