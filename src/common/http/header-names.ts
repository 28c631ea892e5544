/**
 * Header allow-lists in both directions. Nothing crosses the gateway unless a line here or in a provider names it;
 * hop-by-hop headers can therefore never cross.
 */
export type HeaderAllowList = readonly (string | RegExp)[]

/** Response headers every upstream may pass to its caller. Framing headers are written by the relay itself. */
export const RELAYED_RESPONSE_HEADERS: HeaderAllowList = [
  'content-type',
  'content-encoding',
  'content-disposition',
  'cache-control',
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
]

/** Those of an upstream's headers (names in lower case) that an allow-list names; repeated headers are joined. */
export function allowedHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  allowed: HeaderAllowList,
): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const name in headers) {
    const value = headers[name]
    if (value === undefined || !isAllowed(name, allowed)) continue
    kept[name] = typeof value === 'string' ? value : value.join(', ')
  }
  return kept
}

function isAllowed(name: string, allowed: HeaderAllowList): boolean {
  for (const entry of allowed) {
    if (typeof entry === 'string' ? entry === name : entry.test(name)) return true
  }
  return false
}
