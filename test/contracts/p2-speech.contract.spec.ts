import { startP2Simulator } from '@multi-model-gateway/sandbox/p2/p2.simulator.js'
import type { SocketFault } from '@multi-model-gateway/sandbox/server/websocket-protocol.js'
import type { SpeechFault } from './speech-lab.js'
import { describeSpeechProvider } from './speech-provider.contract.js'

const APP_ID = '7305512986'
const ACCESS_TOKEN = 'canaryb81e05aaTx27Rv'

const QUOTING_KEY = { reqid: '', code: 3001, message: `token ${ACCESS_TOKEN} of app ${APP_ID} is not known` }

const FAULTS: Readonly<Record<SpeechFault, SocketFault>> = {
  callersFault: '#err3011',
  refusedKey: '#errgrant',
  busy: '#err3003',
  failure: '#err3031',
  quotesKey: { kind: 'status', status: 401, body: JSON.stringify(QUOTING_KEY) },
  hang: '#hang',
  cut: '#cut',
  shortEnd: '#closeearly',
  stall: '#slow',
}

describeSpeechProvider('P2', {
  provider: 'p2',
  model: 'p2-voice',
  credentials: `${APP_ID}|${ACCESS_TOKEN}`,
  // The specification: aac and flac fall back to mp3.
  sentAs: { mp3: 'mp3', wav: 'wav', aac: 'mp3', flac: 'mp3', opus: 'opus', pcm: 'pcm' },
  maximumCharacters: 4096,
  seesShortEnd: { audio: true, sse: true },
  metadata: {
    accepted: {
      audio: { loudness_ratio: 1.5 },
      request: { silence_duration: 300, enable_trailing_silence_audio: true },
    },
    refused: [
      [{ audio: { nonsense: 1 } }, 'metadata.audio.nonsense'],
      [{ audio: { encoding: 'wav' } }, 'metadata.audio.encoding'],
      [{ audio: { voice_type: 'another' } }, 'metadata.audio.voice_type'],
      [{ request: { text: 'another' } }, 'metadata.request.text'],
      [{ app: { token: 'another' } }, 'metadata.app'],
    ],
  },
  start: async (options) => {
    // Silence that no test waits out.
    const simulator = await startP2Simulator({ apiKey: `${APP_ID}|${ACCESS_TOKEN}`, gapMs: 600_000, ...options })
    return {
      port: simulator.port,
      calls: () => simulator.sessions.length,
      speaking: () =>
        simulator.sessions.filter(({ end, clientMayLeave }) => end === undefined && !clientMayLeave).length,
      violations: () => simulator.violations,
      nextCall: () => simulator.nextSession(),
      nextDisconnect: () => simulator.nextAbort(),
      queueFault: (fault) => {
        simulator.queueFault(FAULTS[fault])
      },
      reset: () => {
        simulator.reset()
      },
      close: () => simulator.close(),
    }
  },
})
