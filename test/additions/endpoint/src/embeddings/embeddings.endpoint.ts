import type { EndpointSpec } from '../core/endpoint.js'
import { estimateChat } from '../limits/estimate-usage.js'

export const EMBEDDINGS = {
  name: 'embeddings',
  method: 'POST',
  path: '/v1/embeddings',
  dialect: 'openai',
  capability: 'embeddings',
  billing: { records: ['request'], usageClass: 'embedding', model: undefined },
  estimate: estimateChat,
  metricFamily: 'embeddings',
  keyHeaders: ['authorization'],
  rateLimit: 'counted',
  bodyLimit: 'jsonBodyBytes',
  loggedPath: 'path',
} as const satisfies EndpointSpec
