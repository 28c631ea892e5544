import type { UsageRecord } from '../../src/core/usage-record.js'

/** 2026-03-04, noon in UTC. */
export const NOON_MS = Date.UTC(2026, 2, 4, 12)

let usageCount = 0

/** A chat call of team A; what is given replaces the defaults. */
export const usageRecord = (changes: Partial<UsageRecord> = {}): UsageRecord => ({
  id: `use_${++usageCount}`,
  atMs: NOON_MS,
  requestId: 'req_1',
  keyId: 'team-a',
  ownerId: 'team-a',
  kind: 'request',
  route: '/v1/chat/completions',
  model: 'gpt-4o',
  channelId: 'p1-main',
  outcome: 'ok',
  durationMs: 12,
  units: { promptTokens: 10, completionTokens: 5 },
  reported: '{"prompt_tokens":10,"completion_tokens":5}',
  estimated: null,
  pricing: 'priced',
  cost: '0.1',
  ...changes,
})
