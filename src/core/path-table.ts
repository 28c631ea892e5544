interface Pattern<Value> {
  readonly segments: readonly string[]
  readonly value: Value
}

/**
 * Path templates → values, matched as the server matches them: by case, slash for slash. A template is literal, or has
 * `:parameters` for whole segments, or takes whatever follows its `*`; literal ones go first, those with `*` last.
 */
export class PathTable<Value> {
  private readonly literal = new Map<string, Value>()
  /** By the number of their segments. */
  private readonly patterns = new Map<number, Pattern<Value>[]>()
  private mostSegments = 0
  private readonly prefixes: { readonly prefix: string; readonly value: Value }[] = []

  set(template: string, value: Value): void {
    // A template is found under its own name as well, without being taken apart.
    this.literal.set(template, value)
    const wildcard = template.indexOf('*')
    if (wildcard >= 0) this.prefixes.push({ prefix: template.slice(0, wildcard), value })
    else if (template.includes(':')) this.addPattern(template.split('/'), value)
  }

  /** Of a literal path, or of a template; one Map lookup. */
  get(path: string): Value | undefined {
    return this.literal.get(path)
  }

  find(path: string): Value | undefined {
    return this.literal.get(path) ?? this.findPattern(path)
  }

  private findPattern(path: string): Value | undefined {
    // A path longer than every template need not be taken apart to its end.
    const segments = path.split('/', this.mostSegments + 1)
    for (const pattern of this.patterns.get(segments.length) ?? []) {
      if (matches(pattern.segments, segments)) return pattern.value
    }
    return this.prefixes.find(({ prefix }) => path.startsWith(prefix))?.value
  }

  private addPattern(segments: readonly string[], value: Value): void {
    this.mostSegments = Math.max(this.mostSegments, segments.length)
    const others = this.patterns.get(segments.length) ?? []
    this.patterns.set(segments.length, [...others, { segments, value }])
  }
}

/** Both have as many segments. */
const matches = (template: readonly string[], segments: readonly string[]): boolean =>
  template.every((segment, index) => (segment.startsWith(':') ? segments[index] !== '' : segment === segments[index]))
