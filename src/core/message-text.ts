const MAXIMUM_MESSAGE_CHARACTERS = 512

/** Hosts, addresses, keys, organisation and project ids that an upstream's text may carry. */
const SECRETS: readonly (readonly [RegExp, string])[] = [
  [/\b(?:https?|wss?):\/\/[^\s"'<>)\\]+/gi, '[address]'],
  [/\b(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?\b/g, '[address]'],
  // A match begins at a whole name only: one that may begin at each label takes quadratic time on a long text.
  [
    /(?<![a-z0-9-]|[a-z0-9-]\.)(?:[a-z0-9-]+\.)+(?:com|net|org|io|ai|dev|cloud|internal|local|cn)(?::\d{1,5})?\b/gi,
    '[host]',
  ],
  // How Node and undici name the address they could not reach, whatever its domain.
  [/\b((?:getaddrinfo|connect) [A-Z_]{3,} |attempted address(?:es)?: )[^\s,)]+/g, '$1[host]'],
  // Before accounts: the key of a project names it.
  [/\b(?:sk|pk|rk|whsec)[-_][A-Za-z0-9*_-]{4,}|\bkey[-_][A-Za-z0-9*_-]{12,}/gi, '[key]'],
  [/\b(?:org|proj)[-_][A-Za-z0-9_-]{3,}/g, '[account]'],
  [/\bBearer\s+[^\s"\\]+/gi, 'Bearer [key]'],
]

/** An upstream's words without its hosts, account ids and keys. */
export function scrubMessage(text: string): string {
  let scrubbed = text
  for (const [pattern, replacement] of SECRETS) scrubbed = scrubbed.replace(pattern, replacement)
  return scrubbed
}

/** JSON text of an upstream's value, all its words scrubbed and no message too long; identifiers stay as they are. */
export function scrubbedJson(value: unknown): string {
  return JSON.stringify(value, (name, member: unknown) => {
    if (typeof member !== 'string' || IDENTIFIERS.has(name)) return member
    const scrubbed = scrubMessage(member)
    return name === 'message' && scrubbed.length > MAXIMUM_MESSAGE_CHARACTERS ? clipped(scrubbed) : scrubbed
  })
}

const IDENTIFIERS: ReadonlySet<string> = new Set(['code', 'type', 'param', 'request_id'])

/** At most 512 characters, without control characters, safe to show in a terminal or a log line. */
export function presentableMessage(text: string): string {
  const clean = text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
  return clean.length <= MAXIMUM_MESSAGE_CHARACTERS ? clean : clipped(clean)
}

function clipped(text: string): string {
  const cut = text.slice(0, MAXIMUM_MESSAGE_CHARACTERS - 1)
  // A cut through a surrogate pair would leave half a character.
  return `${/[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut}…`
}

/** A caller's value as it may appear in a message: quoted, escaped, short. */
export function quoted(value: string): string {
  const short = value.length <= 64 ? value : `${value.slice(0, 63)}…`
  return `'${presentableMessage(short).replace(/[<>&']/g, '')}'`
}
