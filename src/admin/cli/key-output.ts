import type { IssuedKeyDto, KeyDto } from '../keys.dto.js'

const HEADINGS = ['ID', 'STATE', 'KEY', 'MODELS', 'LIMITS', 'EXPIRES', 'NOTE'] as const

/** Keys as a table for a terminal. */
export function keyTable(keys: readonly KeyDto[]): string {
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
export const issuedText = ({ id, key }: IssuedKeyDto): string =>
  `The key of ${id}, shown this once:\n\n  ${key}\n\n` +
  'Replicas that run know it within auth.keyRefreshMs; nobody can show it again.\n'
