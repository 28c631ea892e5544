/** `name` and the base name of `filename` out of a Content-Disposition value; undefined when absent or not form-data. */
export function parseDisposition(value: string): { name: string | undefined; filename: string | undefined } {
  if (!/^form-data\s*(;|$)/i.test(value)) return { name: undefined, filename: undefined }
  const parameters = new Map<string, string>()
  // Clients in the field send quoted values, bare tokens (.NET) and the extended form of RFC 5987.
  for (const match of value.matchAll(/;\s*([\w!#$%&'+.^`|~-]+\*?)\s*=\s*(?:"((?:\\.|[^"\\])*)"|([^;"]*))/g)) {
    const key = (match[1] ?? '').toLowerCase()
    if (!parameters.has(key)) parameters.set(key, match[2]?.replaceAll(/\\(["\\])/g, '$1') ?? (match[3] ?? '').trim())
  }
  const filename = extendedValue(parameters.get('filename*')) ?? parameters.get('filename')
  return { name: parameters.get('name'), filename: filename === undefined ? undefined : baseName(filename) }
}

/** The boundary parameter of a multipart Content-Type; undefined when the type is another or the boundary is invalid. */
export function multipartBoundary(contentType: string | undefined): string | undefined {
  if (contentType === undefined || !/^multipart\/form-data\s*;/i.test(contentType)) return undefined
  const match = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))\s*(?:;|$)/i.exec(contentType)
  return match?.[1] ?? match?.[2]
}

function extendedValue(value: string | undefined): string | undefined {
  const encoded = value === undefined ? undefined : /^utf-8'[^']*'(.*)$/i.exec(value)?.[1]
  if (encoded === undefined) return undefined
  try {
    return decodeURIComponent(encoded)
  } catch {
    return undefined
  }
}

function baseName(path: string): string {
  return path.split(/[/\\]/).at(-1) ?? path
}
