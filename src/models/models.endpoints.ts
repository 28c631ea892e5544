import type { EndpointSpec } from '../core/endpoint.js'
import { MODEL_DOCUMENTATION, MODELS_DOCUMENTATION } from './models.documentation.js'

/** Clients of both dialects list models: `x-api-key` among the key headers makes the path a shared one (`dialectFor`). */
export const MODELS = {
  name: 'models.list',
  method: 'GET',
  path: '/v1/models',
  dialect: 'openai',
  capability: 'none',
  billing: 'none',
  estimate: 'none',
  metricFamily: 'other',
  keyHeaders: ['authorization', 'x-api-key'],
  rateLimit: 'counted',
  bodyLimit: 0,
  loggedPath: 'path',
  documentation: MODELS_DOCUMENTATION,
} as const satisfies EndpointSpec

export const MODEL = {
  ...MODELS,
  name: 'models.find',
  // Names such as `org/model`: not every client sends their slash as %2F.
  path: '/v1/models/*model',
  documentation: MODEL_DOCUMENTATION,
} as const satisfies EndpointSpec
