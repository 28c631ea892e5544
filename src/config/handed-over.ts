/**
 * Makes of a configuration that another process has sent, which arrives as plain objects, what `parseConfig` gives: it is
 * frozen, and no name that an operator or a caller thinks of (`constructor`) means anything in a map. Returns the same value.
 */
export function handedOver<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  if (!Array.isArray(value)) Object.setPrototypeOf(value, null)
  for (const item of Object.values(value)) handedOver(item)
  return Object.freeze(value)
}
