/** What every key that the gateway issues begins with; no upstream's key does. */
export const ISSUED_PREFIX = 'sk-gw-'
