import type { Usage } from './call.js'

/**
 * An upstream's usage object as flat units: numbers by their path (`prompt_tokens_details.cached_tokens`). The
 * upstream's figures are the truth; explicit zeros stay zeros.
 */
export function reportedUsage(usage: unknown): Usage | undefined {
  if (typeof usage !== 'object' || usage === null) return undefined
  const units: Record<string, number> = {}
  collectUnits(usage, '', units)
  return Object.keys(units).length === 0 ? undefined : { units, estimated: false }
}

function collectUnits(value: object, prefix: string, units: Record<string, number>): void {
  for (const [name, member] of Object.entries(value) as [string, unknown][]) {
    if (typeof member === 'number') units[prefix + name] = member
    else if (typeof member === 'object' && member !== null && prefix === '') collectUnits(member, `${name}.`, units)
  }
}
