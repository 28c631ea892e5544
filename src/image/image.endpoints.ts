import type { EndpointSpec } from '../core/endpoint.js'
import {
  IMAGE_EVENTS_DOCUMENTATION,
  IMAGE_FETCH_DOCUMENTATION,
  IMAGE_SEED_DOCUMENTATION,
} from './image.documentation.js'

/** Images are made elsewhere: a task is recorded by whichever of these endpoints first finds it ended. */
export const IMAGE_FETCH = {
  name: 'image.fetch',
  method: 'GET',
  path: '/imggen/task/:id/fetch',
  dialect: 'image',
  capability: 'none',
  billing: { records: ['task'], usageClass: 'image', model: 'images' },
  estimate: 'none',
  metricFamily: 'image',
  keyHeaders: ['authorization'],
  rateLimit: 'counted',
  bodyLimit: 0,
  loggedPath: 'path',
  documentation: IMAGE_FETCH_DOCUMENTATION,
} as const satisfies EndpointSpec

export const IMAGE_SEED = {
  ...IMAGE_FETCH,
  name: 'image.seed',
  path: '/imggen/task/:id/image-seed',
  documentation: IMAGE_SEED_DOCUMENTATION,
} as const satisfies EndpointSpec

export const IMAGE_EVENTS = {
  ...IMAGE_FETCH,
  name: 'image.events',
  path: '/imggen/task/:id/events',
  documentation: IMAGE_EVENTS_DOCUMENTATION,
} as const satisfies EndpointSpec
