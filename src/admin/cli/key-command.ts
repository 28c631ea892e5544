import { parseArgs, type ParseArgsConfig } from 'node:util'
import { isNativeError } from 'node:util/types'
import { KEY_TRANSLATIONS, type KeyTranslation } from '../../config/auth-schema.js'
import type { KeyLimits } from '../../config/settings.js'
import { isCalendarDay } from '../../core/validation-rules.js'
import { LIMIT_RULES } from '../keys.dto.js'
import type { KeyChangeFields } from './key-client.js'

/** The command line is invalid; the message says what is expected. */
export class InvalidCommandError extends Error {
  override readonly name = 'InvalidCommandError'
}

export class UnknownCommandError extends InvalidCommandError {}

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 }
const DATE = /^(\d{4}-\d{2}-\d{2})(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(?:Z|[+-]\d{2}:\d{2}))?$/

/** A time from now (`90d`), or a date; Unix milliseconds. Throws `InvalidCommandError`. */
function expiryOf(text: string, nowMs: number): number {
  const [, count, unit = ''] = /^(\d{1,6})([mhd])$/.exec(text) ?? []
  if (count !== undefined) return nowMs + Number(count) * (UNIT_MS[unit] ?? 0)
  const [, day] = DATE.exec(text) ?? []
  const timeMs = day === undefined || !isCalendarDay(day) ? Number.NaN : Date.parse(text)
  if (Number.isNaN(timeMs))
    throw new InvalidCommandError(
      '--expires needs 90d, 12h or 30m, a date (2030-01-31, 2030-01-31T12:00:00Z), or none.',
    )
  return timeMs
}

export const COMMANDS = ['create', 'list', 'show', 'update', 'revoke', 'admin-key'] as const
type CommandName = (typeof COMMANDS)[number]

/** null removes a limit. */
export type LimitChanges = { readonly [Name in keyof KeyLimits]?: number | null }

/** A parsed command line. */
export interface Command {
  readonly name: CommandName
  /** Id of the key; set for all commands that need one. */
  readonly id: string | undefined
  /** Changed fields except limits; limits are merged with the existing ones. */
  readonly changes: Omit<KeyChangeFields, 'limits'>
  readonly limits: LimitChanges
  readonly url: string | undefined
  readonly isQuiet: boolean
  readonly isJson: boolean
}

/** A command that accesses stored keys. */
export type KeyAdminCommand = Command & { readonly name: Exclude<CommandName, 'admin-key'> }

const LIMIT_NAMES = Object.keys(LIMIT_RULES) as (keyof KeyLimits)[]
const optionName = (limit: string): string => limit.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

const TEXT = { type: 'string' } as const
const FLAG = { type: 'boolean' } as const
type Options = NonNullable<ParseArgsConfig['options']>

const CHANGE_OPTIONS: Options = {
  models: TEXT,
  translation: TEXT,
  note: TEXT,
  expires: TEXT,
  ...Object.fromEntries(LIMIT_NAMES.map((name) => [optionName(name), TEXT])),
}
const OUTPUT_OPTIONS = { url: TEXT, quiet: FLAG, json: FLAG }

/** Options by command. Ids are positional, except `--id` of `create`. */
const OPTIONS = {
  create: { id: TEXT, ...CHANGE_OPTIONS, ...OUTPUT_OPTIONS },
  list: OUTPUT_OPTIONS,
  show: OUTPUT_OPTIONS,
  update: { ...CHANGE_OPTIONS, ...OUTPUT_OPTIONS },
  revoke: OUTPUT_OPTIONS,
  'admin-key': { quiet: FLAG },
} as const satisfies Record<CommandName, Options>

type Values = Readonly<Record<string, unknown>>

/** Throws `InvalidCommandError`. */
export function readCommand(args: readonly string[], nowMs: number): Command {
  const [first, ...rest] = args
  const name = COMMANDS.find((command) => command === first)
  if (name === undefined)
    throw new UnknownCommandError(first === undefined ? 'Which command?' : 'There is no such command.')
  const { values, positionals } = parsed(name, rest)
  const url = textOf(values['url'])
  const changes = keyFieldsOf(values, nowMs)
  const limits = limitsOf(values)
  if (name === 'update' && Object.keys(changes).length + Object.keys(limits).length === 0)
    throw new InvalidCommandError('update needs something to change, such as --expires 30d.')
  if (name === 'create' && typeof changes.expires_at === 'number' && changes.expires_at <= nowMs)
    throw new InvalidCommandError('--expires must be in the future.')
  return {
    name,
    id: idOf(name, positionals) ?? textOf(values['id']),
    changes,
    limits,
    url: url === undefined ? undefined : checkedUrl(url),
    isQuiet: values['quiet'] === true,
    isJson: values['json'] === true,
  }
}

/** The positional id of commands on one key; undefined for others. */
function idOf(name: CommandName, words: readonly string[]): string | undefined {
  const [id, ...further] = words
  if (name === 'show' || name === 'update' || name === 'revoke') {
    if (id === undefined || id === '' || further.length > 0) throw new InvalidCommandError(`${name} needs one id.`)
    return id
  }
  if (id === undefined) return undefined
  const hint = name === 'create' ? ' The id of a new key is given by --id.' : ''
  throw new InvalidCommandError(`${name} takes options only.${hint}`)
}

function parsed(name: CommandName, args: string[]): { readonly values: Values; readonly positionals: string[] } {
  try {
    const options: Options = OPTIONS[name]
    return parseArgs({ args, options, allowPositionals: true, strict: true })
  } catch (error) {
    throw new InvalidCommandError(isNativeError(error) ? error.message : 'The options make no sense.')
  }
}

const NONE = 'none'

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

function keyFieldsOf(values: Values, nowMs: number): Omit<KeyChangeFields, 'limits'> {
  const models = textOf(values['models'])
  const translation = textOf(values['translation'])
  const note = textOf(values['note'])
  const expires = textOf(values['expires'])
  return {
    ...(models === undefined ? {} : { models: models === NONE ? null : models.split(',').map((glob) => glob.trim()) }),
    ...(translation === undefined ? {} : { translation: translationOf(translation) }),
    ...(note === undefined ? {} : { note: note === NONE ? null : note }),
    ...(expires === undefined ? {} : { expires_at: expires === NONE ? null : expiryOf(expires, nowMs) }),
  }
}

function translationOf(text: string): KeyTranslation | null {
  if (text === NONE) return null
  const found = KEY_TRANSLATIONS.find((word) => word === text)
  if (found === undefined) throw new InvalidCommandError(`--translation is ${KEY_TRANSLATIONS.join()} or ${NONE}.`)
  return found
}

function limitsOf(values: Values): LimitChanges {
  const given = LIMIT_NAMES.flatMap((name) => {
    const option = optionName(name)
    const text = textOf(values[option])
    if (text === undefined) return []
    if (text !== NONE && !/^[1-9]\d{0,14}$/.test(text))
      throw new InvalidCommandError(`--${option} needs a whole number above 0, or ${NONE}.`)
    return [[name, text === NONE ? null : Number(text)] as const]
  })
  return Object.fromEntries(given)
}

/** Throws `InvalidCommandError` for what is no address of a gateway. */
export function checkedUrl(url: string): string {
  if (/^https?:\/\/[^\s?#@]+$/.test(url) && URL.canParse(url)) return url
  throw new InvalidCommandError(
    '--url must be the address of a gateway, such as http://127.0.0.1:8080, without user, query or fragment.',
  )
}

const limitHelp = LIMIT_NAMES.map((name) => `  --${optionName(name)} <number>`).join('\n')

export const USAGE = `Usage: npm run keys -- <command>

  create [--id <id>] [terms]   issue a key; it is shown this once
  list                         all keys
  show <id>                    one key
  update <id> <terms>          change what a key may do; "none" takes a term away
  revoke <id>                  end a key for good
  admin-key                    make an admin key for auth.adminKey; nothing is stored

Terms:
  --models <globs>             with commas: 'gpt-*,tts-1'
  --translation strict         refuse what a translation would approximate or drop
  --expires <when>             90d, 12h, 30m, or a date (UTC); with update also one that is over
  --note <text>
${limitHelp}

Anywhere:
  --url <address>              ask the gateway that runs there, by the admin key in GATEWAY_ADMIN_KEY;
                               without it the store itself is opened, as the configuration names it
  --quiet                      create: print the key and nothing else; others: print nothing
  --json                       print JSON

Exit codes: 0 done, 1 refused or failed, 2 not understood.
`
