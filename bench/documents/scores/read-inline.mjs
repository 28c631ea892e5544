const ENTITIES = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ', '#39': "'" }
const ESCAPABLE = /[!-/:-@[-`{-~]/
const isWordCharacter = (character) => character !== undefined && /[\p{L}\p{N}]/u.test(character)
const isBlank = (character) => character === undefined || /\s/.test(character)

/** What may begin at a place, in order of precedence: [pattern, (match, links) => text]. */
const RULES = [
  [/`(?:`*)/y, undefined],
  [/!\[[^\]]*\]\([^)]*\)/y, () => ''],
  [/<((?:https?|mailto):[^\s>]+)>/y, ([, url], links) => (links.push({ text: url, url }), url)],
  [/<br\s*\/?>/y, () => ' '],
  [/<!--.*?-->|<\/?[a-z][^<>]*>/iy, () => ''],
  [/&(#?\w{2,8});/y, ([whole, name]) => ENTITIES[name] ?? whole],
]

function codeSpan(source, at, fence) {
  const end = source.slice(at).search(new RegExp(`(?<!\`)${fence}(?!\`)`))
  return end === -1
    ? undefined
    : { text: source.slice(at, at + end).replace(/^ (.*\S.*) $/, '$1'), next: at + end + fence.length }
}

/** The text of a link that opens at `at`, and its target; undefined when it is none. */
function link(source, at) {
  let depth = 0
  for (let index = at; index < source.length; index += 1) {
    if (source[index] === '\\') index += 1
    else if (source[index] === '[') depth += 1
    else if (source[index] === ']' && (depth -= 1) === 0) {
      const target = /^\(\s*<?([^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*)>?(?:\s+["'][^"']*["'])?\s*\)/.exec(
        source.slice(index + 1),
      )
      return target
        ? { inner: source.slice(at + 1, index), url: target[1], next: index + 1 + target[0].length }
        : undefined
    }
  }
  return undefined
}

/** Marks of emphasis and strikethrough are left out where they can open or close something. */
function isMark(source, at) {
  const [before, character, after] = [source[at - 1], source[at], source[at + 1]]
  if (character === '~') return after === '~' || before === '~'
  if (character === '_' && isWordCharacter(before) && isWordCharacter(after)) return false
  return '*_'.includes(character) && !(isBlank(before) && isBlank(after))
}

/** What a line of Markdown says, without its marks, and where its links lead: {text, links: [{text, url}]}. */
export function readInline(source) {
  const links = []
  let text = ''
  for (let at = 0; at < source.length;) {
    const character = source[at]
    if (character === '\\' && ESCAPABLE.test(source[at + 1] ?? '')) {
      text += source[at + 1]
      at += 2
      continue
    }
    const found = character === '[' ? link(source, at) : undefined
    if (found) {
      const inner = readInline(found.inner)
      links.push(...inner.links, { text: inner.text, url: found.url })
      text += inner.text
      at = found.next
      continue
    }
    const [match, write] = matchAt(source, at)
    const span = match && !write ? codeSpan(source, at + match[0].length, match[0]) : undefined
    if (span || (match && write)) text += span ? span.text : write(match, links)
    else if (match) text += match[0]
    else if (!isMark(source, at)) text += character
    at = span?.next ?? at + (match ? match[0].length : 1)
  }
  return { text, links }
}

function matchAt(source, at) {
  for (const [pattern, write] of RULES) {
    pattern.lastIndex = at
    const match = pattern.exec(source)
    if (match) return [match, write]
  }
  return []
}
