import type { EndpointSpec } from '../core/endpoint.js'
import { estimateChat } from '../limits/estimate-usage.js'

export const CHAT_COMPLETIONS = {
  name: 'chat.completions',
  method: 'POST',
  path: '/v1/chat/completions',
  dialect: 'openai',
  capability: 'chat',
  billing: { records: ['request'], usageClass: 'chat', model: undefined },
  estimate: estimateChat,
  metricFamily: 'chat',
  keyHeaders: ['authorization'],
  rateLimit: 'counted',
  bodyLimit: 'jsonBodyBytes',
  loggedPath: 'path',
} as const satisfies EndpointSpec
