import type { EndpointSpec } from '../core/endpoint.js'
import { LIMITS_DOCUMENTATION, USAGE_DOCUMENTATION, USAGE_RECORDS_DOCUMENTATION } from './account.documentation.js'

/** A caller who has nothing left can ask why. It asks no store: whatever does has its place among those under way. */
export const LIMITS = {
  name: 'limits',
  method: 'GET',
  path: '/v1/limits',
  dialect: 'openai',
  capability: 'none',
  billing: 'none',
  estimate: 'none',
  metricFamily: 'other',
  keyHeaders: ['authorization'],
  rateLimit: 'exempt',
  bodyLimit: 0,
  loggedPath: 'path',
  documentation: LIMITS_DOCUMENTATION,
} as const satisfies EndpointSpec

export const USAGE = {
  ...LIMITS,
  name: 'usage.sums',
  path: '/v1/usage',
  rateLimit: 'counted',
  documentation: USAGE_DOCUMENTATION,
} as const satisfies EndpointSpec

export const USAGE_RECORDS = {
  ...USAGE,
  name: 'usage.records',
  path: '/v1/usage/records',
  documentation: USAGE_RECORDS_DOCUMENTATION,
} as const satisfies EndpointSpec
