import type { EndpointSpec } from '../core/endpoint.js'
import { MULTI_IMAGE_DOCUMENTATION, TEXT_DOCUMENTATION } from './video.documentation.js'
import { VIDEO_TASK_READ, videoTaskPath } from '../tasks/task.endpoints.js'

/** A create is recorded as a request, and what it has made as a task once that has ended. */
export const TEXT_CREATE = {
  ...VIDEO_TASK_READ,
  name: 'video.text.create',
  method: 'POST',
  path: videoTaskPath('text2video'),
  capability: 'video',
  billing: { records: ['request', 'task'], usageClass: 'video', model: undefined },
  bodyLimit: 'jsonBodyBytes',
  documentation: TEXT_DOCUMENTATION.create,
} as const satisfies EndpointSpec

export const TEXT_LIST = {
  ...VIDEO_TASK_READ,
  name: 'video.text.list',
  path: videoTaskPath('text2video'),
  documentation: TEXT_DOCUMENTATION.list,
} as const satisfies EndpointSpec

export const TEXT_FIND = {
  ...VIDEO_TASK_READ,
  name: 'video.text.find',
  path: `${TEXT_CREATE.path}/:id`,
  documentation: TEXT_DOCUMENTATION.find,
} as const satisfies EndpointSpec

export const TEXT_EVENTS = {
  ...VIDEO_TASK_READ,
  name: 'video.text.events',
  path: `${TEXT_CREATE.path}/:id/events`,
  documentation: TEXT_DOCUMENTATION.events,
} as const satisfies EndpointSpec

export const MULTI_IMAGE_CREATE = {
  ...TEXT_CREATE,
  name: 'video.multi_image.create',
  path: videoTaskPath('multi-image2video'),
  bodyLimit: 'imageBodyBytes',
  documentation: MULTI_IMAGE_DOCUMENTATION.create,
} as const satisfies EndpointSpec

export const MULTI_IMAGE_LIST = {
  ...TEXT_LIST,
  name: 'video.multi_image.list',
  path: MULTI_IMAGE_CREATE.path,
  documentation: MULTI_IMAGE_DOCUMENTATION.list,
} as const satisfies EndpointSpec

export const MULTI_IMAGE_FIND = {
  ...TEXT_FIND,
  name: 'video.multi_image.find',
  path: `${MULTI_IMAGE_CREATE.path}/:id`,
  documentation: MULTI_IMAGE_DOCUMENTATION.find,
} as const satisfies EndpointSpec

export const MULTI_IMAGE_EVENTS = {
  ...TEXT_EVENTS,
  name: 'video.multi_image.events',
  path: `${MULTI_IMAGE_CREATE.path}/:id/events`,
  documentation: MULTI_IMAGE_DOCUMENTATION.events,
} as const satisfies EndpointSpec

export const VIDEO_ENDPOINTS = [
  MULTI_IMAGE_CREATE,
  MULTI_IMAGE_LIST,
  MULTI_IMAGE_FIND,
  MULTI_IMAGE_EVENTS,
  TEXT_CREATE,
  TEXT_LIST,
  TEXT_FIND,
  TEXT_EVENTS,
]
