/** A proxy's `GET http://host/path` as the `GET /path` it means: routes, dialects and keys are all judged by path. */
export const originForm = (url: string): string =>
  url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?]*/i, '') || '/'

/** The path of a target in origin form, without its query. */
export function pathOf(url: string): string {
  const query = url.indexOf('?')
  return query === -1 ? url : url.slice(0, query)
}
