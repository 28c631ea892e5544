import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import type { Fault } from '@multi-model-gateway/sandbox/server/faults.js'
import { httpUpstream, type SpeechFault, type SpeechSetup } from './speech-lab.js'
import { describeSpeechProvider } from './speech-provider.contract.js'

const KEY = 'canary4f1d7c0Qz83Lw'

const quotingKey = {
  error: { message: `The key ${KEY} is not for this.`, type: 'invalid_request_error', param: null, code: null },
}

const FAULTS: Readonly<Record<SpeechFault, Fault>> = {
  callersFault: '400',
  refusedKey: '401',
  busy: '429',
  failure: '500',
  quotesKey: {
    kind: 'status',
    status: 400,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(quotingKey),
  },
  hang: 'hang',
  cut: 'cut',
  shortEnd: 'cleancut',
  stall: 'stall',
}

const P1: Omit<SpeechSetup, 'model' | 'seesShortEnd'> = {
  provider: 'p1',
  credentials: KEY,
  sentAs: { mp3: 'mp3', wav: 'wav', aac: 'aac', flac: 'flac', opus: 'opus', pcm: 'pcm' },
  maximumCharacters: 4096,
  metadata: { accepted: { audio: { volume: 11 }, model: 'another' }, refused: [] },
  start: async (options) => httpUpstream(await startP1Simulator({ apiKey: KEY, ...options }), FAULTS),
}

// The upstream streams raw audio for this class whatever was asked for, and raw audio has no end of its own.
describeSpeechProvider('P1', { ...P1, model: 'tts-1', seesShortEnd: { audio: false, sse: false } })

describeSpeechProvider('the style-capable class of P1', {
  ...P1,
  model: 'gpt-4o-mini-tts',
  seesShortEnd: { audio: false, sse: true },
})
