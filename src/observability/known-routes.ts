import type { Application } from 'express'

/** What this reads of Express' router: its layers, each with a route or none. */
interface RouterLayer {
  readonly route?: { readonly path: string; readonly methods: Readonly<Record<string, boolean>> }
}

/** Every route, in the order it was registered; its methods in upper case. */
export const routesOf = (app: Application): { readonly path: string; readonly methods: readonly string[] }[] =>
  layersOf(app).flatMap(({ route }) =>
    route === undefined ? [] : [{ path: route.path, methods: Object.keys(route.methods).map((m) => m.toUpperCase()) }],
  )

/** The methods that exist for a path, upper case; empty for a path that no route knows. */
export function methodsOf(app: Application, path: string): readonly string[] {
  const methods = new Set<string>()
  for (const { route } of layersOf(app)) {
    if (route === undefined || !matchesPattern(route.path, path)) continue
    for (const method of Object.keys(route.methods)) methods.add(method.toUpperCase())
  }
  if (methods.has('GET')) methods.add('HEAD')
  return [...methods].sort()
}

/** Our routes are literal segments and `:parameters`, nothing else. */
function matchesPattern(pattern: string, path: string): boolean {
  const expected = pattern.split('/')
  const segments = path.split('/')
  return (
    expected.length === segments.length &&
    expected.every((segment, index) => (segment.startsWith(':') ? segments[index] !== '' : segment === segments[index]))
  )
}

const layersOf = (app: Application): readonly RouterLayer[] =>
  (app.router as unknown as { readonly stack: readonly RouterLayer[] }).stack
