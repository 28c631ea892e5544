import type { ProviderName, UpstreamTimeouts } from './channel-config.js'
import { isMap } from './config-fault.js'
import { isAbsent } from './schema-schema.js'

/** Where an upstream's own client waits for other times than the gateway's defaults. A new one is declared here. */
const PROVIDER_TIMEOUTS: Readonly<Partial<Record<ProviderName, Partial<UpstreamTimeouts>>>> = {
  // The vendor's SDK gives a handshake 12 s and a socket that says nothing 8 s.
  p2: { connectMs: 12_000, idleMs: 8_000 },
}

/**
 * The timeouts of a channel, the stronger over the weaker: built-in defaults, the provider's, what the file sets for all
 * channels, what it sets for this one. `section` is the checked section `timeouts`, complete with the built-in defaults;
 * `document` is the raw file, which alone knows what was set.
 */
export function channelTimeouts(
  provider: ProviderName,
  own: Partial<UpstreamTimeouts>,
  section: UpstreamTimeouts,
  document: unknown,
): UpstreamTimeouts {
  const raw = isMap(document) ? document['timeouts'] : undefined
  const isSet = (name: keyof UpstreamTimeouts): boolean => isMap(raw) && !isAbsent(raw[name])
  const fallback = PROVIDER_TIMEOUTS[provider] ?? {}
  const timeout = (name: keyof UpstreamTimeouts): number =>
    own[name] ?? (isSet(name) ? section[name] : (fallback[name] ?? section[name]))
  return {
    connectMs: timeout('connectMs'),
    firstByteMs: timeout('firstByteMs'),
    idleMs: timeout('idleMs'),
    totalMs: timeout('totalMs'),
  }
}
