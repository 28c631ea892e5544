/** Response headers every upstream may pass to its caller. Framing headers are written by the relay itself. */
const RELAYED_FROM_EVERYONE = [
  'content-type',
  'content-encoding',
  'content-disposition',
  'cache-control',
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
]

/** Upstreams may send any names; only so many verdicts are remembered. */
const REMEMBERED_VERDICTS = 256

/**
 * The response headers of one upstream that may reach a caller. Nothing crosses the gateway unless a line here or in a
 * provider names it; hop-by-hop headers can therefore never cross. Names in lower case; a trailing `*` means a prefix.
 */
export class HeaderAllowList {
  private readonly names: ReadonlySet<string>
  private readonly prefixes: readonly string[]
  private readonly verdicts = new Map<string, boolean>()

  constructor(...further: readonly string[]) {
    const isPrefix = (name: string): boolean => name.endsWith('*')
    this.names = new Set([...RELAYED_FROM_EVERYONE, ...further.filter((name) => !isPrefix(name))])
    this.prefixes = further.filter(isPrefix).map((name) => name.slice(0, -1))
  }

  /** A fresh object with the allowed ones of an upstream's headers; repeated headers are joined. */
  pick(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
    const kept: Record<string, string> = {}
    for (const name in headers) {
      const value = headers[name]
      if (value === undefined || !this.allows(name)) continue
      kept[name] = typeof value === 'string' ? value : value.join(', ')
    }
    return kept
  }

  private allows(name: string): boolean {
    const known = this.verdicts.get(name)
    if (known !== undefined) return known
    const verdict = this.names.has(name) || this.prefixes.some((prefix) => name.startsWith(prefix))
    if (this.verdicts.size < REMEMBERED_VERDICTS) this.verdicts.set(name, verdict)
    return verdict
  }
}
