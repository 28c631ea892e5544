import { pairCredentials } from '../../config/channel-schema.js'
import { mapOf, optional, recordOf, withDefault } from '../../config/checks.js'
import { clusterName, positiveNumber, voiceName } from '../../config/value-types.js'
import type { ProviderManifest } from '../contract.js'
import { P2SpeechProvider } from './p2-speech.js'

interface SpeedRange {
  readonly minimum: number
  readonly maximum: number
}

type P2Options = {
  readonly voices?: Readonly<Record<string, string>>
  readonly cluster: string
  readonly speedRange: SpeedRange
}

const speedRange = mapOf<SpeedRange>(
  { minimum: withDefault(positiveNumber, 0.8), maximum: withDefault(positiveNumber, 2) },
  ({ minimum, maximum }, at) => {
    if (minimum !== undefined && maximum !== undefined && minimum >= maximum)
      at.field('maximum').fault(`must be greater than ${at.field('minimum').path}`)
  },
)

/** P2, speech over a binary WebSocket. */
export const P2_MANIFEST: ProviderManifest = {
  name: 'p2',
  credentialsSchema: pairCredentials('pair', 'must be APP_ID|ACCESS_TOKEN with two printable parts, or "caller"'),
  optionsSchema: mapOf<P2Options>({
    voices: optional(recordOf(voiceName)),
    cluster: withDefault(clusterName, 'volcano_tts'),
    speedRange: withDefault(speedRange, {}),
  }),
  // The vendor's SDK gives a handshake 12 s and a socket that says nothing 8 s.
  timeouts: { connectMs: 12_000, idleMs: 8_000 },
  capabilities: { speech: P2SpeechProvider },
  defaultModelClass: 'tts',
  // Channels name their models themselves.
  models: {},
}
