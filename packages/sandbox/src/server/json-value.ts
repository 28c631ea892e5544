export type JsonObject = Readonly<Record<string, unknown>>

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value as an array of unknown; empty when it is none. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as readonly unknown[]) : []
}

/** The value as an array of its objects; other entries are left out. */
export function objectsOf(value: unknown): readonly JsonObject[] {
  return listOf(value).filter(isObject)
}

/** The value when it is a string, else the empty string. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Own field of an object that came from JSON; undefined when the value is no object. */
export function fieldOf(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
}

/** Parses a request body; undefined when it is not a JSON object. */
export function parseJsonObject(body: Buffer): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'))
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
