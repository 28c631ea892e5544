import { familyOf, type TrafficFamily } from './traffic-family.js'

/** A route as the server has it: `/imggen/task/:id/fetch`, `/admin/*path`. */
export interface RouteTemplate {
  readonly path: string
  /** Upper case. */
  readonly methods: readonly string[]
}

/** Methods that no route has; callers may make up as many as they like. */
export const OTHER_METHOD = 'other'

/** What paths are counted under: a template, and not what a caller made up. */
export interface KnownRoute {
  /** `other` for unknown paths. */
  readonly template: string
  readonly family: TrafficFamily
  readonly methods: ReadonlySet<string>
}

const OTHER: KnownRoute = { template: 'other', family: 'other', methods: new Set() }

/** Finds the template that a path belongs to. Paths are matched as the server matches them: by case, slash for slash. */
export class RouteTable {
  private readonly literal = new Map<string, KnownRoute>()
  /** By the number of their segments. */
  private readonly patterns = new Map<number, { readonly segments: readonly string[]; readonly route: KnownRoute }[]>()
  private mostSegments = 0
  /** Of routes that take whatever follows. */
  private readonly prefixes: { readonly prefix: string; readonly route: KnownRoute }[] = []

  constructor(templates: readonly RouteTemplate[]) {
    const methodsByPath = new Map<string, string[]>()
    for (const { path, methods } of templates) {
      methodsByPath.set(path, [...(methodsByPath.get(path) ?? []), ...methods])
    }
    for (const [path, methods] of methodsByPath) this.add(knownRoute(path, methods))
  }

  find(path: string): KnownRoute {
    const known = this.literal.get(path)
    if (known !== undefined) return known
    // Of a path that is longer than any of ours nobody needs to know how long.
    const segments = path.split('/', this.mostSegments + 1)
    const candidates = this.patterns.get(segments.length) ?? []
    const pattern = candidates.find((candidate) => matches(candidate.segments, segments))
    return (pattern ?? this.prefixes.find(({ prefix }) => path.startsWith(prefix)))?.route ?? OTHER
  }

  private add(route: KnownRoute): void {
    const wildcard = route.template.indexOf('*')
    if (wildcard >= 0) {
      this.prefixes.push({ prefix: route.template.slice(0, wildcard), route })
      return
    }
    if (!route.template.includes(':')) {
      this.literal.set(route.template, route)
      return
    }
    const segments = route.template.split('/')
    this.mostSegments = Math.max(this.mostSegments, segments.length)
    const others = this.patterns.get(segments.length) ?? []
    this.patterns.set(segments.length, [...others, { segments, route }])
  }
}

function knownRoute(template: string, methods: readonly string[]): KnownRoute {
  const known = new Set(methods)
  if (known.has('GET')) known.add('HEAD')
  return { template, family: familyOf(template), methods: known }
}

const matches = (expected: readonly string[], segments: readonly string[]): boolean =>
  expected.every((segment, index) => (segment.startsWith(':') ? segments[index] !== '' : segment === segments[index]))
