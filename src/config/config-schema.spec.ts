import { describe, expect, it } from '@jest/globals'
import { createHash } from 'node:crypto'
import { ConfigError } from './config-fault.js'
import { parseConfig } from './config-loader.js'
import type { Variables } from './variable.js'

function faultsOf(yaml: string, env: Variables = {}): string[] {
  try {
    parseConfig(yaml, env)
  } catch (error) {
    if (error instanceof ConfigError) return error.faults.map(({ path, message }) => `${path}: ${message}`)
    throw error
  }
  return []
}

const json = JSON.stringify
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
const whsec = (bytes: number): string => `whsec_${Buffer.alloc(bytes, 7).toString('base64')}`
const BYTES = { min: 1, max: Number.MAX_SAFE_INTEGER }
const COUNT = { min: 1, max: 1_000_000 }
const DURATION = { min: 1, max: 2_147_483_647 }
const PORT = { min: 0, max: 65_535 }

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

  it.each([
    ['server', 'port', PORT],
    ['server', 'metricsPort', PORT],
    ['server', 'workers', { min: 1, max: 128 }],
    ['limits', 'jsonBodyBytes', BYTES],
    ['limits', 'imageBodyBytes', BYTES],
    ['limits', 'audioFileBytes', BYTES],
    ['limits', 'audioBodyBytes', BYTES],
    ['limits', 'documentBytes', { min: 1, max: 268_435_456 }],
    ['limits', 'realtimeSessions', COUNT],
    ['limits', 'realtimeAudioBytes', BYTES],
    ['limits', 'realtimeFrameBytes', { min: 1, max: 1_073_741_824 }],
    ['limits', 'realtimeFragments', COUNT],
    ['limits', 'realtimeEventsPerSecond', COUNT],
    ['limits', 'realtimePingsPerSecond', COUNT],
    ['timeouts', 'connectMs', DURATION],
    ['timeouts', 'firstByteMs', DURATION],
    ['timeouts', 'idleMs', DURATION],
    ['timeouts', 'totalMs', DURATION],
    ['timeouts', 'shutdownGraceMs', DURATION],
    ['timeouts', 'drainDelayMs', { min: 0, max: 600_000 }],
    ['timeouts', 'realtimeStuckMs', DURATION],
    ['timeouts', 'realtimePingMs', DURATION],
    ['timeouts', 'realtimeIdleMs', DURATION],
    ['timeouts', 'realtimeAgeMs', DURATION],
    ['auth', 'keyRefreshMs', { min: 100, max: 4000 }],
    ['auth', 'expectedOutputTokens', { min: 0, max: 1_000_000 }],
    ['breaker', 'failures', { min: 1, max: 1000 }],
    ['admission', 'concurrentRequests', COUNT],
    ['admission', 'bytesInFlight', BYTES],
    ['admission', 'memoryBytes', { min: 67_108_864, max: Number.MAX_SAFE_INTEGER }],
    ['tasks', 'pollIntervalMs', DURATION],
    ['tasks', 'maxAgeMs', BYTES],
    ['tasks', 'reconcileMs', BYTES],
    ['tasks', 'retentionMs', BYTES],
    ['tasks', 'pollsPerChannel', { min: 1, max: 1000 }],
    ['tasks', 'pollsPerSecond', COUNT],
    ['callbacks', 'timeoutMs', DURATION],
    ['callbacks', 'perHost', { min: 1, max: 1000 }],
    ['documents', 'parseMs', DURATION],
    ['documents', 'pages', { min: 1, max: 100_000 }],
    ['documents', 'processes', { min: 1, max: 64 }],
    ['documents', 'queue', { min: 0, max: 10_000 }],
    ['documents', 'memoryBytes', { min: 134_217_728, max: 68_719_476_736 }],
    ['documents', 'fetchesInFlight', { min: 1, max: 10_000 }],
    ['documents', 'cacheMs', { min: 0, max: 2_147_483_647 }],
    ['documents', 'cacheBytes', BYTES],
    ['usage', 'queueRows', COUNT],
    ['usage', 'batchRows', { min: 1, max: 5000 }],
    ['usage', 'batchMs', { min: 1, max: 60_000 }],
    ['usage', 'retentionMs', BYTES],
    ['database', 'maxConnections', { min: 1, max: 1000 }],
    ['redis', 'timeoutMs', { min: 1, max: 10_000 }],
  ])('accepts only whole numbers within range for %s.%s', (section, setting, { min, max }) => {
    for (const good of [min, max, String(min)]) expect(faultsOf(json({ [section]: { [setting]: good } }))).toEqual([])
    for (const bad of [min - 1, max + 1, min + 0.5, '1e3', '0x10', ' 1', 'ten', '', true, [1], {}]) {
      expect([bad, faultsOf(json({ [section]: { [setting]: bad } }))]).toEqual([
        bad,
        [expect.stringMatching(new RegExp(`^${section}\\.${setting}: must be an integer (?:≥|from) ${min}`))],
      ])
    }
  })

  it.each([
    ['server.host', ['::', '10.0.0.1', 'gateway.local'], ['a b', 'http://x', '', 7]],
    [
      'server.publicUrl',
      ['https://x.example', 'http://x:8080/base/'],
      ['wss://x', 'https://x?y', 'https://u:p@x', 'x'],
    ],
    [
      'server.allowedOrigins',
      [['https://app.example.com', 'http://localhost:3000/'], ['*']],
      [
        [],
        '*',
        ['https://*.example.com'],
        ['https://x.example.com/x'],
        ['null'],
        ['app.example.com'],
        ['wss://x'],
        ['https://x?y'],
        ['https://u@x'],
      ],
    ],
    [
      'server.trustedProxies',
      [[], ['10.0.0.0/8', '127.0.0.1', '::1', 'fd00::/8', '0.0.0.0/0', '::/0', '10.0.0.1/32']],
      [
        '10.0.0.0/8',
        ['10.0.0.0/33'],
        ['fd00::/129'],
        ['10.0.0.0/'],
        ['10.0.0/8'],
        ['10.0.0.0/8/8'],
        ['10.0.0.0/-1'],
        ['balancer'],
        [''],
        ['*'],
        ['::ffff:10.0.0.1'],
        ['fe80::1%eth0'],
        [' 10.0.0.1'],
        [10],
      ],
    ],
    ['database.url', ['postgres://u:p#w@h/db', 'postgresql:///db?host=/run'], ['mysql://h/db', 'postgres://', 'h', 5]],
    ['redis.url', ['redis://h:6379/1', 'rediss://:p@h'], ['http://h', 'redis://a b']],
    ['redis.localShare', [0.01, 1, '0.5'], [0, -0.5, 1.1, 'half', true]],
    ['logging.level', ['trace', 'silent'], ['verbose', 'INFO', 3]],
    ['callbacks.secret', [whsec(24), whsec(64)], [whsec(23), whsec(65), 'whsec_', 'whsec_!!', whsec(24).slice(6)]],
    ['callbacks.scheduleMs', [[0], [5, 0, 5]], [[], [-1], [1.5], 5, [2_147_483_648], [null]]],
    [
      'ssrf.allow',
      [['127.0.0.1:9000', '[::1]:80', 'db:1']],
      [['x'], ['x:0'], ['x:65536'], ['[x]:1'], ['a/b:1'], 'x:1'],
    ],
  ])('checks the form of %s', (path, goods, bads) => {
    const [section = '', setting = ''] = path.split('.')
    for (const good of goods) expect([good, faultsOf(json({ [section]: { [setting]: good } }))]).toEqual([good, []])
    for (const bad of bads as unknown[]) {
      const faults = faultsOf(json({ [section]: { [setting]: bad } }))
      expect([bad, faults]).toEqual([bad, [expect.stringContaining(path)]])
    }
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

  it('forgets an access key for its hash, and takes a hash as it is', () => {
    const hash = sha256('other key')
    const yaml = json({
      auth: {
        keys: [
          { id: 'a', key: 'k|1' },
          { id: 'b', key: `sha256:${hash.toUpperCase()}`, models: ['*'] },
        ],
      },
    })
    expect(parseConfig(yaml, {}).auth.keys).toEqual([
      { id: 'a', sha256: sha256('k|1') },
      { id: 'b', sha256: hash, models: ['*'] },
    ])
  })

  it('takes limits of keys, and those of keys without any of their own', () => {
    const limits = {
      requestsPerMinute: 600,
      tokensPerMinute: '100000',
      audioSecondsPerMinute: 1,
      concurrency: 4,
      realtimeSessions: 2,
    }
    const keys = [
      { id: 'a', key: 'one', limits },
      { id: 'b', key: 'two', limits: {} },
    ]
    const { auth } = parseConfig(json({ auth: { keys, defaultLimits: { concurrency: 1_000_000 } } }), {})
    expect(auth.keys.map((key) => key.limits)).toEqual([{ ...limits, tokensPerMinute: 100_000 }, {}])
    expect(auth.defaultLimits).toEqual({ concurrency: 1_000_000 })
  })

  it.each(['requestsPerMinute', 'tokensPerMinute', 'audioSecondsPerMinute', 'concurrency', 'realtimeSessions'])(
    'refuses %s that is no whole number above 0 or beyond reason, with its place',
    (name) => {
      for (const bad of [0, -1, 1.5, 'many', 1_000_000_001, true]) {
        const auth = { keys: [{ id: 'a', key: 'one', limits: { [name]: bad } }], defaultLimits: { [name]: bad } }
        expect([bad, faultsOf(json({ auth })).map((fault) => fault.split(':')[0])]).toEqual([
          bad,
          [`auth.keys[0].limits.${name}`, `auth.defaultLimits.${name}`],
        ])
      }
    },
  )

  it('refuses malformed keys, ids and globs, each with its place', () => {
    const keys = [
      { id: 'a b', key: 'x' },
      { id: 'x'.repeat(65), key: 'two words' },
      { id: 'c', key: 'y'.repeat(513) },
      { id: 'd', key: 'sha256:abc' },
      { id: 'e', key: 12345, models: [] },
      { id: 'f', models: ['', 'gpt-?', 'a*'] },
    ]
    expect(faultsOf(json({ auth: { keys } })).map((fault) => fault.split(': ')[0])).toEqual([
      'auth.keys[0].id',
      'auth.keys[1].id',
      'auth.keys[1].key',
      'auth.keys[2].key',
      'auth.keys[3].key',
      'auth.keys[4].key',
      'auth.keys[4].models',
      'auth.keys[5].key',
      'auth.keys[5].models[0]',
      'auth.keys[5].models[1]',
    ])
  })

  it('refuses the same id or the same key twice, also when one of them is given as a hash', () => {
    const keys = [
      { id: 'a', key: 'one' },
      { id: 'b', key: `sha256:${sha256('one')}` },
      { id: 'a', key: 'two' },
    ]
    expect(faultsOf(json({ auth: { keys } }))).toEqual([
      'auth.keys[2].id: is the same as auth.keys[0].id',
      'auth.keys[1].key: is the same as auth.keys[0].key',
    ])
  })

  it('checks added catalogue rows', () => {
    const models = [
      { id: 'org/whisper:1', class: 'stt-standard', providers: ['p4'] },
      { id: 'org/whisper:1', class: 'speech', providers: [] },
      { id: 'glob-*', class: 'chat', providers: ['p1', 'p9'] },
      'text',
    ]
    const faults = faultsOf(json({ models }))
    expect(faults).toEqual([
      'models[1].id: is the same as models[0].id',
      expect.stringMatching(/^models\[1\]\.class: must be one of tts, /),
      'models[1].providers: must name at least one provider',
      expect.stringMatching(/^models\[2\]\.id: must be a model name/),
      expect.stringMatching(/^models\[2\]\.providers\[1\]: must be one of p1, /),
      'models[3]: must be a map',
    ])
  })

  it('refuses unknown keys at every level', () => {
    const yaml = json({
      sever: {},
      server: { prot: 1 },
      auth: { keys: [{ id: 'a', key: 'k', model: [] }] },
      toString: {},
    })
    expect(faultsOf(yaml)).toEqual([
      'document: unknown key "sever"; did you mean "server"?',
      expect.stringMatching(/^document: unknown key "toString"; allowed: server, limits, /),
      'server: unknown key "prot"; did you mean "port"?',
      'auth.keys[0]: unknown key "model"; did you mean "models"?',
    ])
  })

  it('lets the environment win over the file, and names the variable when it is at fault', () => {
    const yaml = 'server: {port: 1, host: file}\ndatabase: {url: "${NOT_SET}"}\nlogging: {level: nonsense}'
    const env = {
      PORT: '8081',
      HOST: '::1',
      DATABASE_URL: 'postgres://h/${X}',
      REDIS_URL: 'redis://h',
      LOG_LEVEL: 'warn',
    }
    expect(parseConfig(yaml, env)).toMatchObject({
      server: { port: 8081, host: '::1' },
      database: { url: 'postgres://h/${X}' },
      redis: { url: 'redis://h' },
      logging: { level: 'warn' },
    })
    expect(faultsOf('{}', { PORT: 'abc', LOG_LEVEL: 'loud' })).toEqual([
      'PORT: must be an integer from 0 to 65535',
      'LOG_LEVEL: must be one of trace, debug, info, warn, error, fatal, silent',
    ])
  })

  it('takes numbers that come from the environment', () => {
    const yaml =
      'server:\n  port: ${P}\nchannels:\n  - { id: a, provider: p1, baseUrl: "http://h", credentials: k, weight: "${W}" }'
    const config = parseConfig(yaml, { P: '8082', W: '0.5' })
    expect(config.server.port).toBe(8082)
    expect(config.channels[0]?.weight).toBe(0.5)
  })

  it('cannot be changed once it is loaded', () => {
    const config = parseConfig(
      json({
        channels: [
          { id: 'a', provider: 'p2', baseUrl: 'ws://h', credentials: 'a|b', options: { voices: { alloy: 'x' } } },
        ],
      }),
      {},
    )
    const frozen = (value: unknown): boolean =>
      typeof value !== 'object' || value === null || (Object.isFrozen(value) && Object.values(value).every(frozen))
    expect(frozen(config)).toBe(true)
  })
})
