import { newKey } from '../../auth/key-table.js'
import { estimatedBits, MINIMUM_ADMIN_KEY_BITS } from '../../config/auth-schema.js'
import type { KeyLimits } from '../../config/settings.js'
import type { IssuedKeyDto, KeyDto } from '../keys.dto.js'
import type { KeyAdmin } from './key-client.js'
import type { KeyAdminCommand, LimitChanges } from './key-command.js'

const HEADINGS = ['ID', 'STATE', 'KEY', 'MODELS', 'LIMITS', 'EXPIRES', 'NOTE'] as const

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

/** Executes a command; resolves with the text to print. */
export async function runCommand(command: KeyAdminCommand, keyAdmin: KeyAdmin): Promise<string> {
  const { name, id = '', changes, limits } = command
  switch (name) {
    case 'create': {
      const issued = await keyAdmin.create({ ...(id === '' ? {} : { id }), ...changes, ...someLimits(limits, null) })
      if (command.isQuiet) return `${issued.key}\n`
      return command.isJson ? jsonText(issued) : issuedText(issued)
    }
    case 'list': {
      const keys = await keyAdmin.list()
      if (command.isQuiet) return ''
      return command.isJson ? jsonText(keys) : keyTable(keys)
    }
    case 'show':
      return shown(await keyAdmin.show(id), command)
    case 'update': {
      const current = Object.keys(limits).length === 0 ? null : (await keyAdmin.show(id)).limits
      return shown(await keyAdmin.change(id, { ...changes, ...someLimits(limits, current) }), command)
    }
    case 'revoke':
      return shown(await keyAdmin.revoke(id), command)
  }
}

/** A random key that the configuration accepts: a few look like a pattern and would be refused. */
export function newAdminKey(): string {
  let key: string
  do key = newKey('sk-gw-admin-')
  while (estimatedBits(key) < MINIMUM_ADMIN_KEY_BITS)
  return key
}

/** The existing limits merged with the changes; null when none is left. */
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
