import { newKey } from '../../auth/key-table.js'
import { guessingBits, LEAST_ADMIN_KEY_BITS } from '../../config/auth-schema.js'
import type { KeyLimits } from '../../config/settings.js'
import type { IssuedKeyDto, KeyDto } from '../keys.dto.js'
import type { KeyAdmin } from './key-client.js'
import type { KeyAdminCommand, LimitChanges } from './key-command.js'

const HEADINGS = ['ID', 'STATE', 'KEY', 'MODELS', 'LIMITS', 'EXPIRES', 'NOTE'] as const

/** Keys as a table for a terminal. */
function keyTable(keys: readonly KeyDto[]): string {
  const rows = [HEADINGS, ...keys.map(cellsOf)]
  const widths = HEADINGS.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('')
}

const cellsOf = (key: KeyDto): readonly string[] => [
  key.id,
  key.state,
  `${key.hint}…`,
  key.models?.join(',') ?? '*',
  limitsText(key),
  key.expires_at === null ? '-' : new Date(key.expires_at).toISOString(),
  key.note ?? '',
]

const limitsText = ({ limits }: KeyDto): string => {
  const given = Object.entries(limits ?? {})
  return given.length === 0 ? '-' : given.map(([name, limit]) => `${name}=${String(limit)}`).join(' ')
}

/** The only time a key is printed. */
const issuedText = ({ id, key }: IssuedKeyDto): string =>
  `The key of ${id}, shown this once:\n\n  ${key}\n\n` +
  'Replicas that run know it within auth.keyRefreshMs; nobody can show it again.\n'

/** Does what a command says; resolves with what is to be printed. */
export async function runCommand(command: KeyAdminCommand, keys: KeyAdmin): Promise<string> {
  const { name, id = '', terms, limits } = command
  switch (name) {
    case 'create': {
      const issued = await keys.create({ ...(id === '' ? {} : { id }), ...terms, ...someLimits(limits, null) })
      if (command.isQuiet) return `${issued.key}\n`
      return command.isJson ? jsonText(issued) : issuedText(issued)
    }
    case 'list': {
      const listed = await keys.list()
      if (command.isQuiet) return ''
      return command.isJson ? jsonText(listed) : keyTable(listed)
    }
    case 'show':
      return shown(await keys.show(id), command)
    case 'update': {
      const current = Object.keys(limits).length === 0 ? null : (await keys.show(id)).limits
      return shown(await keys.change(id, { ...terms, ...someLimits(limits, current) }), command)
    }
    case 'revoke':
      return shown(await keys.revoke(id), command)
  }
}

/** Random text looks like a pattern once in a while; one that the configuration would refuse is no use. */
export function newAdminKey(): string {
  let key: string
  do key = newKey('sk-gw-admin-')
  while (guessingBits(key) < LEAST_ADMIN_KEY_BITS)
  return key
}

/** The limits there are with those that were named laid over them; null when none is left. */
function someLimits(changes: LimitChanges, current: KeyLimits | null): { limits?: KeyLimits | null } {
  const names = Object.keys(changes)
  if (names.length === 0) return {}
  const limits = Object.fromEntries(
    Object.entries({ ...current, ...changes }).filter((entry): entry is [string, number] => entry[1] !== null),
  )
  return { limits: Object.keys(limits).length === 0 ? null : limits }
}

function shown(key: KeyDto, { isQuiet, isJson }: KeyAdminCommand): string {
  if (isQuiet) return ''
  return isJson ? jsonText(key) : keyTable([key])
}

const jsonText = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`
