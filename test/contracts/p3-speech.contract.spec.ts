import { startP3Simulator } from '@multi-model-gateway/sandbox/p3/p3.simulator.js'
import type { Fault } from '@multi-model-gateway/sandbox/server/faults.js'
import { httpUpstream, type SpeechFault } from './speech-lab.js'
import { describeSpeechProvider } from './speech-provider.contract.js'

const KEY = 'canary60a2eeHm59Kd'

/** P3 answers 200 whatever happens, and says in the body what did. */
const refusal = (code: number, message: string): Fault => ({
  kind: 'status',
  status: 200,
  headers: { 'content-type': 'application/json; charset=utf-8' },
  body: JSON.stringify({ data: null, trace_id: '04b2', base_resp: { status_code: code, status_msg: message } }),
})

const FAULTS: Readonly<Record<SpeechFault, Fault>> = {
  callersFault: refusal(2013, 'invalid params, this text cannot be spoken'),
  refusedKey: refusal(2049, 'invalid api key'),
  busy: refusal(1002, 'rate limit exceeded(RPM)'),
  failure: refusal(1000, 'unknown error'),
  quotesKey: refusal(2013, `invalid params, ${KEY} was sent as Bearer ${KEY}`),
  hang: 'hang',
  cut: 'cut',
  shortEnd: 'cleancut',
  stall: 'stall',
}

describeSpeechProvider('P3', {
  provider: 'p3',
  model: 'speech-02-hd',
  credentials: KEY,
  // P3 has no form of aac.
  sentAs: { mp3: 'mp3', wav: 'wav', aac: 'mp3', flac: 'flac', opus: 'opus', pcm: 'pcm' },
  maximumCharacters: 10_000,
  seesShortEnd: { audio: true, sse: true },
  metadata: {
    accepted: { voice_setting: { emotion: 'happy', vol: 2, pitch: 1.6 }, language_boost: 'auto' },
    refused: [
      [{ nonsense: 1 }, 'metadata.nonsense'],
      [{ voice_setting: { nonsense: 1 } }, 'metadata.voice_setting.nonsense'],
      [{ voice_setting: { voice_id: 'another' } }, 'metadata.voice_setting.voice_id'],
      [{ voice_setting: { pitch: 13 } }, 'metadata.voice_setting.pitch'],
      [{ model: 'another' }, 'metadata.model'],
      [{ text: 'another' }, 'metadata.text'],
      [{ audio_setting: { format: 'wav' } }, 'metadata.audio_setting'],
    ],
  },
  start: async (options) => httpUpstream(await startP3Simulator({ apiKey: KEY, ...options }), FAULTS),
})
