/** Compiles globs (`*` is the only wildcard, case matters) into one predicate; absent globs allow every name. */
export function globMatcher(globs: readonly string[] | undefined): (name: string) => boolean {
  if (globs === undefined) return () => true
  const exact = new Set(globs.filter((glob) => !glob.includes('*')))
  const patterns = globs.filter((glob) => glob.includes('*')).map(globPattern)
  return (name) => exact.has(name) || patterns.some((matches) => matches(name))
}

/** Linear in the name, which is as long as a caller makes it; a regular expression with several `.*` is not. */
function globPattern(glob: string): (name: string) => boolean {
  const [first = '', ...middle] = glob.split(/\*+/)
  const last = middle.pop() ?? ''
  return (name) => {
    const end = name.length - last.length
    if (end < first.length || !name.startsWith(first) || !name.endsWith(last)) return false
    let position = first.length
    for (const part of middle) {
      const found = name.indexOf(part, position)
      if (found === -1 || found + part.length > end) return false
      position = found + part.length
    }
    return true
  }
}
