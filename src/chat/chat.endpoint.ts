import type { EndpointSpec } from '../core/endpoint.js'
import { estimateChat } from '../limits/estimate-usage.js'
import { CHAT_COMPLETIONS_DOCUMENTATION } from './chat.documentation.js'

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
  documentation: CHAT_COMPLETIONS_DOCUMENTATION,
} as const satisfies EndpointSpec
