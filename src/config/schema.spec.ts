import { describe, expect, it } from '@jest/globals'
import { faultsOf } from '../../test/support/config-faults.js'
import { parseConfig } from './load-config.js'

const json = JSON.stringify

describe('the configuration', () => {
  it('has the contract defaults when the file sets nothing', () => {
    expect(parseConfig('{}', {})).toEqual({
      server: { host: '0.0.0.0', port: 8080, metricsPort: 9090, workers: 1, explainHeaders: true, trustedProxies: [] },
      limits: {
        jsonBodyBytes: 10_485_760,
        imageBodyBytes: 62_914_560,
        audioFileBytes: 26_214_400,
        audioBodyBytes: 28_311_552,
        documentBytes: 26_214_400,
        realtimeSessions: 1000,
        realtimeAudioBytes: 15_728_640,
        realtimeFrameBytes: 22_020_096,
        realtimeFragments: 1024,
        realtimeEventsPerSecond: 500,
        realtimePingsPerSecond: 20,
        realtimePauseBytes: 1_048_576,
        realtimeCloseBytes: 4_194_304,
      },
      timeouts: {
        connectMs: 5000,
        firstByteMs: 120_000,
        idleMs: 60_000,
        totalMs: 570_000,
        shutdownGraceMs: 30_000,
        drainDelayMs: 0,
        realtimeStuckMs: 10_000,
        realtimePingMs: 20_000,
        realtimeIdleMs: 300_000,
        realtimeAgeMs: 3_480_000,
      },
      auth: { keys: [], expectedOutputTokens: 1000, keyRefreshMs: 2000 },
      channels: [],
      models: [],
      breaker: { failures: 3, coolDownMs: 5000, maximumCoolDownMs: 300_000 },
      admission: {
        concurrentRequests: 10_000,
        bytesInFlight: 314_572_800,
        callerShare: 0.5,
        loopDelayHighMs: 100,
        loopDelayLowMs: 5,
        memoryHighShare: 0.9,
        memoryLowShare: 0.8,
      },
      ssrf: { allow: [] },
      tasks: {
        pollIntervalMs: 5000,
        maxAgeMs: 86_400_000,
        reconcileMs: 600_000,
        retentionMs: 2_592_000_000,
        pollsPerChannel: 16,
        pollsPerSecond: 250,
      },
      callbacks: {
        scheduleMs: [0, 5000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 36_000_000],
        timeoutMs: 15_000,
        perHost: 2,
      },
      documents: {
        defaultTimeoutMs: 30_000,
        maximumTimeoutMs: 120_000,
        parseMs: 15_000,
        pages: 500,
        processes: 2,
        queue: 4,
        memoryBytes: 805_306_368,
        fetchesInFlight: 32,
        cacheMs: 3_600_000,
        cacheBytes: 67_108_864,
      },
      usage: { queueRows: 50_000, batchRows: 500, batchMs: 1000, retentionMs: 7_776_000_000 },
      prices: [],
      database: { maxConnections: 10 },
      redis: { timeoutMs: 250, localShare: 0.5 },
      logging: { level: 'info' },
      observability: { otlpHeaders: {}, traceSampleRatio: 1 },
    })
  })

  it('takes a section whose lines are all commented out for an absent one', () => {
    expect(parseConfig('server:\nchannels:\nauth:\n  keys:\n', {})).toEqual(parseConfig('{}', {}))
  })

  it('closes a session for a slow reader only above the point where it is waited for', () => {
    const limits = (realtimePauseBytes: number, realtimeCloseBytes: number): string[] =>
      faultsOf(json({ limits: { realtimePauseBytes, realtimeCloseBytes } }))
    expect(limits(100, 101)).toEqual([])
    const fault = 'limits.realtimeCloseBytes: must be greater than limits.realtimePauseBytes'
    expect([limits(100, 100), limits(101, 100)]).toEqual([[fault], [fault]])
  })

  it('takes watermarks of admission only where the low one is below the high one', () => {
    const faults = (admission: object): string[] => faultsOf(json({ admission }))
    expect(faults({ loopDelayHighMs: 6, loopDelayLowMs: 5, memoryHighShare: 0.02, memoryLowShare: 0.01 })).toEqual([])
    expect(faults({ loopDelayHighMs: 5 })).toEqual([
      'admission.loopDelayLowMs: must be less than admission.loopDelayHighMs',
    ])
    expect(faults({ memoryLowShare: 0.9 })).toEqual([
      'admission.memoryLowShare: must be less than admission.memoryHighShare',
    ])
    expect(faults({ loopDelayHighMs: 4, loopDelayLowMs: 10_001, memoryHighShare: 1.1, callerShare: 0 })).toHaveLength(4)
  })

  it('knows origins by the spelling browsers have for them', () => {
    const { server } = parseConfig('{server: {allowedOrigins: ["HTTPS://App.Example:443/", "*"]}}', {})
    expect(server.allowedOrigins).toEqual(['https://app.example', '*'])
  })

  it('brings addresses into one spelling', () => {
    const config = parseConfig(
      '{server: {publicUrl: "HTTPS://X.example:443/base//"}, ssrf: {allow: ["LOCALHOST:080", "[0:0::1]:9"]}}',
      {},
    )
    expect(config.server.publicUrl).toBe('https://x.example/base')
    expect(config.ssrf.allow).toEqual(['localhost:80', '[::1]:9'])
  })

  it('refuses guard exemptions in production only', () => {
    const yaml = '{ssrf: {allow: ["127.0.0.1:9000"]}}'
    expect(faultsOf(yaml, { NODE_ENV: 'production' })).toEqual([
      'ssrf.allow: must be empty when NODE_ENV is production',
    ])
    expect(faultsOf(yaml, { NODE_ENV: 'test' })).toEqual([])
    expect(faultsOf('{ssrf: {allow: []}}', { NODE_ENV: 'production' })).toEqual([])
  })

  it('refuses one port for two listeners, but not two that are off or free', () => {
    expect(faultsOf('{server: {port: 9090}}')).toEqual([
      'server.metricsPort: must differ from server.port (0 switches it off)',
    ])
    expect(faultsOf('{server: {port: 0, metricsPort: 0}}')).toEqual([])
    expect(faultsOf('{server: {port: 9090, host: "a b"}}')).toHaveLength(2)
  })
})
