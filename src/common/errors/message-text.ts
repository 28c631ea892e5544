const MAXIMUM_MESSAGE_CHARACTERS = 512

/** Hosts, addresses, keys, organisation and project ids that an upstream's text may carry. */
const SECRETS: readonly (readonly [RegExp, string])[] = [
  [/\b(?:https?|wss?):\/\/[^\s"'<>)]+/gi, '[address]'],
  [/\b(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?\b/g, '[address]'],
  [/\b(?:[a-z0-9-]+\.)+(?:com|net|org|io|ai|dev|cloud|internal|local|cn)(?::\d{1,5})?\b/gi, '[host]'],
  [/\b(?:org|proj)[-_][A-Za-z0-9_-]{3,}/g, '[account]'],
  [/\b(?:sk|pk|rk|key|whsec)[-_][A-Za-z0-9*_-]{4,}/gi, '[key]'],
  [/\bBearer\s+[^\s"\\]+/gi, 'Bearer [key]'],
]

/** An upstream's words without its hosts, account ids and keys. */
export function scrubMessage(text: string): string {
  let scrubbed = text
  for (const [pattern, replacement] of SECRETS) scrubbed = scrubbed.replace(pattern, replacement)
  return scrubbed
}

/** At most 512 characters, without control characters, safe to show in a terminal or a log line. */
export function presentableMessage(text: string): string {
  const clean = text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ')
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
