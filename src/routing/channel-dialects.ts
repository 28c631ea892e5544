import type { ModelRow } from '../config/channel-schema.js'
import { isWritingDialect, MODEL_CLASSES, type ModelCapability, type WritingDialect } from '../config/model-classes.js'
import type { GatewayConfig } from '../config/settings.js'
import type { Capability, ProviderCapabilities } from '../providers/contract.js'
import { type Channel, classOn } from './channel.js'

/** The upstream's dialects over which each dialect of clients is served, the one that keeps most first. */
const SERVED_OVER: Readonly<Record<WritingDialect, readonly WritingDialect[]>> = {
  chat: ['messages'],
  messages: ['chat'],
  responses: ['messages', 'chat'],
}

/** What a channel's upstream can be asked for of a model itself. */
export function capabilitiesOn(
  channel: Channel,
  row: ModelRow | undefined,
  capabilities: ProviderCapabilities,
): readonly ModelCapability[] {
  const ofClass: readonly ModelCapability[] = MODEL_CLASSES[classOn(channel, row)]
  const named = row?.dialects
  const asked =
    named === undefined ? ofClass : [...named, ...ofClass.filter((capability) => !isWritingDialect(capability))]
  return asked.filter((capability) => capabilities[capability] !== undefined)
}

/**
 * The dialect in which a channel is asked for a capability: `native` = its upstream speaks it, a dialect = the one to translate to,
 * undefined = not served.
 */
export function servedOver(
  capability: Capability,
  channel: Channel,
  row: ModelRow | undefined,
  {
    own,
    translate,
  }: { readonly own: readonly Capability[]; readonly translate: GatewayConfig['dialects']['translate'] },
): WritingDialect | 'native' | undefined {
  if (own.includes(capability)) return 'native'
  if (!isWritingDialect(capability) || !isTranslated(channel, row, translate)) return undefined
  // They are asked for audio, which the other dialects do not have.
  if (classOn(channel, row) === 'chat-audio') return undefined
  return SERVED_OVER[capability].find((dialect) => own.includes(dialect))
}

/** Whether the operator wants a model translated on a channel; what the channel says goes before what the gateway does. */
function isTranslated(
  { config }: Channel,
  row: ModelRow | undefined,
  translate: GatewayConfig['dialects']['translate'],
): boolean {
  const wish = config.translate ?? (translate === 'on' ? 'always' : 'never')
  return wish === 'always' || (wish === 'only_these' && row?.dialects !== undefined)
}
