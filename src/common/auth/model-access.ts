/** Compiles globs (`*` is the only wildcard, case matters) into one predicate; absent globs allow every name. */
export function globMatcher(globs: readonly string[] | undefined): (name: string) => boolean {
  if (globs === undefined) return () => true
  const exact = new Set(globs.filter((glob) => !glob.includes('*')))
  const patterns = globs.filter((glob) => glob.includes('*')).map(globPattern)
  return (name) => exact.has(name) || patterns.some((pattern) => pattern.test(name))
}

function globPattern(glob: string): RegExp {
  const literal = glob.split(/\*+/).map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
  return new RegExp(`^${literal.join('.*')}$`, 's')
}
