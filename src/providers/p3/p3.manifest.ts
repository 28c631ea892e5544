import { keyCredentials, voices } from '../../config/channel-schema.js'
import { identifier, settings } from '../../config/value-types.js'
import type { ProviderManifest } from '../contract.js'
import { P3SpeechProvider } from './p3-speech.js'

const options = settings({
  voices: voices.exactOptional(),
  groupId: identifier.exactOptional().describe("p3: the account's group, which only older hosts want"),
})

/** P3, speech with emotion over HTTP. */
export const P3_MANIFEST: ProviderManifest = {
  name: 'p3',
  credentialsSchema: keyCredentials,
  optionsSchema: options,
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
