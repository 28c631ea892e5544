import { type MixedOptions, type MixedUpstreams, UPSTREAM_KEY, VIDGEN } from './mixed-upstreams.js'

/** All but those of realtime sessions, which have a simulator of their own: its connections can be told from idle ones. */
const P1_MODELS = ['gpt-4.1-mini', 'tts-1', 'gpt-4o-mini-tts', 'whisper-1', 'gpt-4o-mini-transcribe']
/** Cut short, so that what falls silent does not pile up. */
const TIMEOUTS = { connectMs: 1000, firstByteMs: 1500, idleMs: 1000, totalMs: 10_000 }
/** Of realtime sessions, likewise; nobody here pauses for so long but those who are to be cut off. */
const REALTIME_TIMEOUTS = { realtimeIdleMs: 2000, realtimeStuckMs: 2000 }
/** Beyond the callers there are: of those who have left, some are noticed a moment later. */
const NOT_NOTICED = 40

/** The keys of the callers: most have one with ample limits, some share one that they keep running into. */
export const KEYS = { wide: 'soak-caller-canary', narrow: 'soak-limited-canary' } as const
export type KeyName = keyof typeof KEYS

/**
 * What no caller may run into, however long it goes on, and what many do. The wide one's places would be used up
 * within a minute or two if some of them were not given back.
 */
const limitsOf = (workers: number) => ({
  wide: {
    requestsPerMinute: 1_000_000,
    tokensPerMinute: 1_000_000_000,
    audioSecondsPerMinute: 100_000_000,
    concurrency: workers + NOT_NOTICED,
    realtimeSessions: workers + NOT_NOTICED,
  },
  narrow: {
    requestsPerMinute: 400,
    tokensPerMinute: 20_000,
    audioSecondsPerMinute: 400,
    concurrency: 2,
    realtimeSessions: 1,
  },
})

/** The gateway's configuration with one channel to each upstream. Everything that was used is stored, and has a price. */
export function mixedConfiguration(upstreams: MixedUpstreams, { workers }: Pick<MixedOptions, 'workers'>): object {
  const { p1, live, p2, p3, m1, vidgen, web } = upstreams
  const limits = limitsOf(workers)
  const names = Object.keys(KEYS) as KeyName[]
  return {
    auth: { keys: names.map((name) => ({ id: name, key: KEYS[name], limits: limits[name] })) },
    channels: [
      { id: 'p1', provider: 'p1', baseUrl: p1.url, credentials: UPSTREAM_KEY, models: P1_MODELS },
      { id: 'live', provider: 'p1', baseUrl: live.url, credentials: UPSTREAM_KEY, models: ['gpt-realtime'] },
      { id: 'p2', provider: 'p2', baseUrl: p2.url, credentials: `app|${UPSTREAM_KEY}`, models: ['p2-tts'] },
      { id: 'p3', provider: 'p3', baseUrl: p3.url, credentials: UPSTREAM_KEY },
      { id: 'm1', provider: 'm1', baseUrl: m1.url, credentials: UPSTREAM_KEY },
      { id: 'vidgen', provider: 'vidgen', baseUrl: vidgen.url, credentials: `${VIDGEN.accessKey}|${VIDGEN.secretKey}` },
    ].map((channel) => ({ ...channel, timeouts: TIMEOUTS })),
    timeouts: { ...TIMEOUTS, ...REALTIME_TIMEOUTS, shutdownGraceMs: 10_000 },
    ssrf: { allow: [`127.0.0.1:${web.port}`] },
    tasks: { pollIntervalMs: 500 },
    documents: { cacheBytes: 4 * 1024 * 1024 },
    usage: { store: true },
    prices: [{ models: ['*'], requests: 0.01 }],
  }
}
