import type { EndpointSpec } from '../core/endpoint.js'
import { estimateResponse } from '../limits/estimate-usage.js'
import {
  CANCEL_DOCUMENTATION,
  CREATE_DOCUMENTATION,
  DELETE_DOCUMENTATION,
  FIND_DOCUMENTATION,
  INPUT_ITEMS_DOCUMENTATION,
  INPUT_TOKENS_DOCUMENTATION,
} from './responses.documentation.js'

export const RESPONSES = {
  name: 'responses.create',
  method: 'POST',
  path: '/v1/responses',
  dialect: 'openai',
  capability: 'responses',
  // A response in the background is a task.
  billing: { records: ['request', 'task'], usageClass: 'chat', model: undefined },
  estimate: estimateResponse,
  metricFamily: 'responses',
  keyHeaders: ['authorization'],
  rateLimit: 'counted',
  bodyLimit: 'jsonBodyBytes',
  loggedPath: 'path',
  documentation: CREATE_DOCUMENTATION,
} as const satisfies EndpointSpec

/** Nothing is generated, but an upstream is asked: its requests are recorded, its tokens are not. */
export const INPUT_TOKENS = {
  ...RESPONSES,
  name: 'responses.input_tokens',
  path: '/v1/responses/input_tokens',
  billing: { ...RESPONSES.billing, records: ['request'] },
  estimate: 'none',
  documentation: INPUT_TOKENS_DOCUMENTATION,
} as const satisfies EndpointSpec

/** Reads of what was paid for when it was made. */
export const RESPONSE_FIND = {
  ...RESPONSES,
  name: 'responses.find',
  method: 'GET',
  path: '/v1/responses/:id',
  capability: 'none',
  billing: 'none',
  estimate: 'none',
  bodyLimit: 0,
  documentation: FIND_DOCUMENTATION,
} as const satisfies EndpointSpec

export const RESPONSE_INPUT_ITEMS = {
  ...RESPONSE_FIND,
  name: 'responses.input_items',
  path: '/v1/responses/:id/input_items',
  documentation: INPUT_ITEMS_DOCUMENTATION,
} as const satisfies EndpointSpec

export const RESPONSE_CANCEL = {
  ...RESPONSE_FIND,
  name: 'responses.cancel',
  method: 'POST',
  path: '/v1/responses/:id/cancel',
  documentation: CANCEL_DOCUMENTATION,
} as const satisfies EndpointSpec

export const RESPONSE_DELETE = {
  ...RESPONSE_FIND,
  name: 'responses.delete',
  method: 'DELETE',
  documentation: DELETE_DOCUMENTATION,
} as const satisfies EndpointSpec
