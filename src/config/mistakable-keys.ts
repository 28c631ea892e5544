import type { AuthSection } from './access-config.js'
import { isMap } from './config-fault.js'
import { ISSUED_PREFIX } from './issued-prefix.js'
import type { ConfigDocument } from './schema.js'

/**
 * Which keys do not begin as the gateway's own do, where a channel passes callers' keys on. Of a key that is given as a
 * hash nobody knows how it begins. `document` is the raw one, as the checked one has hashes alone.
 */
export function mistakableKeys(
  { auth, channels }: Pick<ConfigDocument, 'auth' | 'channels'>,
  document: unknown,
): Pick<AuthSection, 'mistakableKeys'> {
  if (!channels.some(({ credentials }) => credentials.kind === 'caller')) return {}
  const rawAuth = isMap(document) ? document['auth'] : undefined
  const rawKeys = isMap(rawAuth) ? rawAuth['keys'] : undefined
  if (!Array.isArray(rawKeys)) return {}
  const begins = (raw: unknown): boolean => isMap(raw) && String(raw['key']).startsWith(ISSUED_PREFIX)
  const ids = auth.keys.filter((_key, index) => !begins(rawKeys[index])).map(({ id }) => id)
  return ids.length === 0 ? {} : { mistakableKeys: ids }
}
