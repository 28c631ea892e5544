const SCHEMES: ReadonlySet<string> = new Set(['http:', 'https:', 'mailto:', 'tel:', 'ftp:'])
const IMAGE_SCHEMES: ReadonlySet<string> = new Set(['http:', 'https:'])

/** Where a link leads, ready to stand in Markdown's parentheses; undefined where it leads nowhere else. */
export function linkTarget(reference: string, baseUrl: string): string | undefined {
  if (reference === '' || reference.startsWith('#')) return undefined
  const url = absolute(reference, baseUrl)
  if (url === undefined) return relativeTarget(reference, baseUrl)
  if (!SCHEMES.has(url.protocol) || (url.hash !== '' && isSamePage(url, baseUrl))) return undefined
  return destination(url.href)
}

/** Address of a picture or a film, ready to stand in Markdown's parentheses; undefined for data and the unreadable. */
export function mediaTarget(reference: string, baseUrl: string): string | undefined {
  if (reference === '' || reference.startsWith('#')) return undefined
  const url = absolute(reference, baseUrl)
  if (url === undefined) return relativeTarget(reference, baseUrl)
  return IMAGE_SCHEMES.has(url.protocol) ? destination(url.href) : undefined
}

function absolute(reference: string, baseUrl: string): URL | undefined {
  try {
    return new URL(reference, baseUrl === '' ? undefined : baseUrl)
  } catch {
    return undefined
  }
}

// Without a base a relative reference stays what it is, as long as it has no scheme that only failed to parse.
function relativeTarget(reference: string, baseUrl: string): string | undefined {
  const plain = reference.replace(/\p{Cc}/gu, '')
  if (baseUrl !== '' || /^[\w+.-]*:/.test(plain)) return undefined
  return destination(plain.replace(/\s/g, '%20').replaceAll('<', '%3C').replaceAll('>', '%3E'))
}

function isSamePage(url: URL, baseUrl: string): boolean {
  const base = absolute(baseUrl, '')
  return (
    base !== undefined &&
    url.href.slice(0, -url.hash.length) === base.href.slice(0, base.href.length - base.hash.length)
  )
}

// A parenthesis without its partner ends a destination; a backslash escapes, and entities are read there as well.
function destination(href: string): string {
  const safe = href
    .replaceAll('\\', '%5C')
    .replaceAll('|', '%7C')
    .replace(/&(?=#?\w{1,32};)/g, '&amp;')
  return isBalanced(safe) ? safe : safe.replaceAll('(', '%28').replaceAll(')', '%29')
}

function isBalanced(text: string): boolean {
  let depth = 0
  for (const [parenthesis] of text.matchAll(/[()]/g)) {
    depth += parenthesis === '(' ? 1 : -1
    // CommonMark asks for three levels at least; more are not read everywhere.
    if (depth < 0 || depth > 3) return false
  }
  return depth === 0
}
