import * as z from 'zod'
import { pairCredentials, voices } from '../../config/channel-schema.js'
import { shownPath } from '../../config/faults.js'
import { bothValid, positiveNumber, settings } from '../../config/value-types.js'
import type { ProviderManifest } from '../contract.js'
import { P2_FORMAT_NAMES, P2_VOICES } from './p2-request.js'
import { P2SpeechProvider } from './p2-speech.js'

const speedRange = settings({
  minimum: positiveNumber.default(0.8).describe('p2: the slowest'),
  maximum: positiveNumber.default(2).meta({ type: 'number above minimum' }).describe('p2: the fastest'),
}).refine(({ minimum, maximum }) => minimum < maximum, {
  path: ['maximum'],
  error: ({ path = [] }) => `must be greater than ${shownPath([...path.slice(0, -1), 'minimum'])}`,
  when: bothValid('minimum', 'maximum'),
})

const options = settings({
  voices: voices.exactOptional(),
  cluster: z
    .string()
    .regex(/^[\x21-\x7e]{1,64}$/, 'must be 1 to 64 printable ASCII characters without spaces')
    .meta({ type: '1–64 printable ASCII' })
    .default('volcano_tts')
    .describe("p2: the upstream's cluster; cloned voices have another one"),
  speedRange: speedRange.prefault({}).describe('p2: the speeds the upstream takes; beyond them the nearer end is sent'),
})

/** P2, speech over a binary WebSocket. */
export const P2_MANIFEST: ProviderManifest = {
  name: 'p2',
  credentialsSchema: pairCredentials('pair', 'must be APP_ID|ACCESS_TOKEN with two printable parts, or "caller"'),
  optionsSchema: options,
  // The vendor's SDK gives a handshake 12 s and a socket that says nothing 8 s.
  timeouts: { connectMs: 12_000, idleMs: 8_000 },
  capabilities: { speech: P2SpeechProvider },
  defaultModelClass: 'tts',
  offers: { tts: { voices: Object.keys(P2_VOICES), formats: P2_FORMAT_NAMES } },
  // Channels name their models themselves.
  models: {},
}
