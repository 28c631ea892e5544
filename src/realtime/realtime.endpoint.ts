import type { EndpointSpec } from '../core/endpoint.js'
import { REALTIME_DOCUMENTATION } from './realtime.documentation.js'

/** Browsers cannot set headers on a socket: their clients offer the key as a subprotocol. */
export const REALTIME = {
  name: 'realtime',
  method: 'GET',
  path: '/v1/realtime',
  dialect: 'openai',
  capability: 'realtime',
  billing: { records: ['request', 'response', 'input_transcription'], usageClass: 'realtime', model: undefined },
  estimate: 'each_response',
  metricFamily: 'realtime',
  keyHeaders: ['authorization', 'sec-websocket-protocol'],
  rateLimit: 'counted',
  bodyLimit: 0,
  loggedPath: 'path',
  documentation: REALTIME_DOCUMENTATION,
} as const satisfies EndpointSpec
