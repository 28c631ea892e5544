import { describe, expect, it } from '@jest/globals'
import { createLogging } from '../observability/logger.js'
import { LogUsageRecorder } from './log-usage-recorder.js'

describe('Usage in the log', () => {
  it('is one line per entry, under the request id of its call', () => {
    const lines: string[] = []
    const { logger } = createLogging('info', { write: (line) => void lines.push(line) })
    const units = { total_tokens: 3, input_token_details: { cached_tokens: 1 } }
    const common = { keyId: 'team-a', channelId: 'p1-main', model: 'gpt-realtime', units, estimated: false }
    new LogUsageRecorder(logger).record({ callId: 'req_1', kind: 'response', ...common })
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      { level: 30, time: expect.any(String), requestId: 'req_1', kind: 'response', ...common, msg: 'usage' },
    ])
  })
})
