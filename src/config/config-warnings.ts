import { ISSUED_PREFIX } from './issued-prefix.js'
import type { GatewayConfig } from './settings.js'

/** What is allowed but probably not meant, for the log at start and after a reload; never a value. */
export function configWarnings(config: GatewayConfig): string[] {
  const warnings: string[] = []
  if (config.callbacks.secret === undefined) warnings.push('callbacks.secret is not set: callbacks are sent unsigned')
  if (config.channels.length === 0) warnings.push('channels is empty: nothing but documents can be served')
  const hasOwnRows = config.models.some(({ providers }) => providers.includes('p2'))
  config.channels.forEach(({ provider, models }, index) => {
    if (provider !== 'p2' || models !== undefined || hasOwnRows) return
    warnings.push(
      `channels[${index}].models is not set: the catalogue has no models for p2, so the channel serves none`,
    )
  })
  const passesCallers = config.channels.some(({ credentials }) => credentials.kind === 'caller')
  const readsKeys = config.auth.adminKey !== undefined || config.database.url !== undefined
  if (config.auth.keys.length === 0 && !passesCallers && !readsKeys)
    warnings.push('auth.keys is empty: every request is refused')
  const { mistakableKeys } = config.auth
  if (mistakableKeys !== undefined)
    warnings.push(
      `auth.keys: ${shown(mistakableKeys)} may be passed on to an upstream, by credentials: caller, where a gateway does ` +
        `not know them yet or any more; only keys that begin with ${ISSUED_PREFIX} never are`,
    )
  if (config.auth.adminKey?.isJudged === false)
    warnings.push('auth.adminKey is given as a hash: nobody has judged how easily the key is guessed')
  return warnings
}

const MAXIMUM_SHOWN = 10

function shown(ids: readonly string[]): string {
  const rest = ids.length - MAXIMUM_SHOWN
  return ids.slice(0, MAXIMUM_SHOWN).join(', ') + (rest > 0 ? ` and ${rest} more` : '')
}
