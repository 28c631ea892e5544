import { keyCredentials } from '../../config/channel-schema.js'
import { mapOf, optional, recordOf } from '../../config/checks.js'
import { identifier, voiceName } from '../../config/value-types.js'
import type { ProviderManifest } from '../contract.js'
import { P3SpeechProvider } from './p3-speech.js'

type P3Options = {
  readonly voices?: Readonly<Record<string, string>>
  readonly groupId?: string
}

/** P3, speech with emotion over HTTP. */
export const P3_MANIFEST: ProviderManifest = {
  name: 'p3',
  credentialsSchema: keyCredentials,
  optionsSchema: mapOf<P3Options>({ voices: optional(recordOf(voiceName)), groupId: optional(identifier) }),
  capabilities: { speech: P3SpeechProvider },
  defaultModelClass: 'tts',
  models: {
    tts: [
      'speech-2.5-hd-preview',
      'speech-2.5-turbo-preview',
      'speech-02-hd',
      'speech-02-turbo',
      'speech-01-hd',
      'speech-01-turbo',
    ],
  },
}
