import type { ModelRow } from '../config/channel-schema.js'
import {
  isWritingDialect,
  MODEL_CLASSES,
  type ModelCapability,
  type ModelClass,
  type WritingDialect,
} from '../config/model-classes.js'
import type { GatewayConfig } from '../config/settings.js'
import type { Capability, ProviderCapabilities } from '../providers/contract.js'
import { type Channel, classOn } from './channel.js'
import { TRANSLATIONS } from './translated-providers.js'

/** What a model of a class can be asked for without translation; a row may say which dialects its upstreams speak. */
export function capabilitiesOf(modelClass: ModelClass, row: ModelRow | undefined): readonly ModelCapability[] {
  const ofClass: readonly ModelCapability[] = MODEL_CLASSES[modelClass]
  if (row?.dialects === undefined) return ofClass
  return [...row.dialects, ...ofClass.filter((capability) => !isWritingDialect(capability))]
}

/** What a channel's upstream can be asked for of a model itself. */
export const capabilitiesOn = (
  channel: Channel,
  row: ModelRow | undefined,
  capabilities: ProviderCapabilities,
): readonly ModelCapability[] =>
  capabilitiesOf(classOn(channel, row), row).filter((capability) => capabilities[capability] !== undefined)

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
  return TRANSLATIONS[capability].find(({ over }) => own.includes(over))?.over
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
