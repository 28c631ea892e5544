import { describe, expect, it } from '@jest/globals'
import { faultsOf } from '../../test/support/config-faults.js'

const json = JSON.stringify
const whsec = (bytes: number): string => `whsec_${Buffer.alloc(bytes, 7).toString('base64')}`
const BYTES = { min: 1, max: Number.MAX_SAFE_INTEGER }
const COUNT = { min: 1, max: 1_000_000 }
const DURATION = { min: 1, max: 2_147_483_647 }
const PORT = { min: 0, max: 65_535 }

describe('a setting', () => {
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
})
