import type { EndpointSpec } from '../core/endpoint.js'
import { estimateChat } from '../limits/estimate-usage.js'
import { COUNT_TOKENS_DOCUMENTATION, MESSAGES_DOCUMENTATION } from './messages.documentation.js'

export const MESSAGES = {
  name: 'messages',
  method: 'POST',
  path: '/v1/messages',
  dialect: 'messages',
  capability: 'messages',
  billing: { records: ['request'], usageClass: 'messages', model: undefined },
  estimate: estimateChat,
  metricFamily: 'messages',
  keyHeaders: ['authorization', 'x-api-key'],
  rateLimit: 'counted',
  bodyLimit: 'jsonBodyBytes',
  loggedPath: 'path',
  documentation: MESSAGES_DOCUMENTATION,
} as const satisfies EndpointSpec

/** Nothing is generated, but an upstream is asked: its requests are recorded, its tokens are not. */
export const COUNT_TOKENS = {
  ...MESSAGES,
  name: 'messages.count_tokens',
  path: '/v1/messages/count_tokens',
  estimate: 'none',
  documentation: COUNT_TOKENS_DOCUMENTATION,
} as const satisfies EndpointSpec
