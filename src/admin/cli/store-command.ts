import { parseArgs, type ParseArgsConfig } from 'node:util'
import { isNativeError } from 'node:util/types'
import type { StorePlace } from '../../storage/store-place.js'
import { checkedUrl, InvalidCommandError, UnknownCommandError } from './key-command.js'

/** A parsed command line; undefined places are the store that the configuration names. */
export type StoreCommand =
  | { readonly name: 'copy'; readonly from?: StorePlace; readonly to?: StorePlace; readonly isRestart: boolean }
  | { readonly name: 'backup'; readonly from?: StorePlace; readonly url?: string; readonly file: string }
  | { readonly name: 'restore'; readonly file: string; readonly to?: StorePlace; readonly isRestart: boolean }

const TEXT = { type: 'string' } as const
const OPTIONS = {
  copy: { from: TEXT, to: TEXT, restart: { type: 'boolean' } },
  backup: { from: TEXT, to: TEXT, url: TEXT },
  restore: { from: TEXT, to: TEXT, restart: { type: 'boolean' } },
} as const satisfies Record<string, ParseArgsConfig['options']>

interface Values {
  readonly from?: string
  readonly to?: string
  readonly url?: string
  readonly restart?: boolean
}

/** Throws `InvalidCommandError`. */
export function readStoreCommand(words: readonly string[]): StoreCommand {
  const [first, ...rest] = words
  switch (first) {
    case 'copy': {
      const { from, to, restart = false } = parsed(first, rest)
      if (from === undefined && to === undefined) throw new InvalidCommandError('copy needs --from, --to, or both.')
      return { name: first, ...place('from', from), ...place('to', to), isRestart: restart }
    }
    case 'backup': {
      const { from, to, url } = parsed(first, rest)
      if (from !== undefined && url !== undefined)
        throw new InvalidCommandError('backup takes --from or --url, not both.')
      return {
        name: first,
        ...place('from', from),
        ...(url === undefined ? {} : { url: checkedUrl(url) }),
        file: fileOf('backup needs --to, a new file.', to),
      }
    }
    case 'restore': {
      const { from, to, restart = false } = parsed(first, rest)
      return {
        name: first,
        file: fileOf('restore needs --from, a file.', from),
        ...place('to', to),
        isRestart: restart,
      }
    }
    case undefined:
    default:
      throw new UnknownCommandError(first === undefined ? 'Which command?' : 'There is no such command.')
  }
}

function parsed(name: keyof typeof OPTIONS, args: string[]): Values {
  try {
    const options: NonNullable<ParseArgsConfig['options']> = OPTIONS[name]
    return parseArgs({ args, options, strict: true }).values
  } catch (error) {
    throw new InvalidCommandError(isNativeError(error) ? error.message : 'The options make no sense.')
  }
}

function fileOf(message: string, value: string | undefined): string {
  if (value === undefined || value === '' || value.includes('://')) throw new InvalidCommandError(message)
  return value
}

function place<Name extends 'from' | 'to'>(name: Name, text: string | undefined): Partial<Record<Name, StorePlace>> {
  return text === undefined ? {} : ({ [name]: placeOf(name, text) } as Record<Name, StorePlace>)
}

const PASSWORD = /^\w+:\/\/[^@/?]*:[^@/?]*@|[?&]password=/i

/** The words of a command are seen by every user of the machine, and npm prints them. */
const NO_PASSWORDS =
  'is seen by others when it has a password: leave it out and set PGPASSWORD or ~/.pgpass, or leave the option out and set ' +
  'DATABASE_URL or DATABASE_URL_FILE.'

function placeOf(name: string, text: string): StorePlace {
  if (PASSWORD.test(text)) throw new InvalidCommandError(`--${name} ${NO_PASSWORDS}`)
  if (/^postgres(?:ql)?:\/\/./.test(text)) return { url: text }
  if (text === '' || text.includes('://'))
    throw new InvalidCommandError(
      `--${name} must be the folder of an embedded store, or postgres://user@host/database.`,
    )
  return { directory: text }
}

export const STORE_USAGE = `Usage: npm run store -- <command>

  copy --from <store> --to <store>   move everything into an empty store
  backup --to <file>                 write everything into a new file
  restore --from <file>              read a backup into an empty store

  --from, --to <store>               ./data, the folder of an embedded store, or postgres://user@host/database;
                                     left out: the store that the configuration names
  --url <address>                    backup: of the embedded store of the gateway that runs there, by the admin key in
                                     GATEWAY_ADMIN_KEY
  --restart                          copy, restore: remove what an earlier run of the command has left, and begin anew

What was interrupted goes on when the same command is given again. No gateway may use the target; what a gateway
writes into the source of a copy meanwhile is not copied.

Exit codes: 0 done, 1 refused or failed, 2 not understood.
`
