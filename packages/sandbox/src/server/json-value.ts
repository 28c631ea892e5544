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

/** No `+` behind the set: V8 has no stack for it on 10 MB in a process that no longer optimizes its regular expressions. */
const BASE64 = /^[A-Za-z0-9+/][A-Za-z0-9+/]*={0,2}$/

/** Whether the text is of the alphabet of Base64, padded or not, and has at least one letter of it. */
export const isBase64 = (text: string): boolean => BASE64.test(text)

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
