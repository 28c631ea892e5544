/** The upstream's field at the beginning of what it says of it: `messages.3.content: …`, `` `temperature` may … ``. */
const NAMED_FIELD = /^(?:([`"'])([a-z_]+(?:[.[][\w\]]+)*)\1|([a-z_]+(?:[.[][\w\]]+)*)(?=:))/

/** The field that an upstream's error is about: its errors have no member for it. */
export function fieldNamedIn(message: string): string | undefined {
  const match = NAMED_FIELD.exec(message)
  return match?.[2] ?? match?.[3]
}
