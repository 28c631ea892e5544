import type { EndpointSpec } from '../core/endpoint.js'
import type { VideoKind } from '../providers/contract.js'
import { callbacksDocumentation, REDELIVER_DOCUMENTATION } from './task.documentation.js'

/** Where tasks of a kind are created, and in the records of them all. */
export const videoTaskPath = <Kind extends VideoKind>(kind: Kind): `/vidgen/v1/videos/${Kind}` =>
  `/vidgen/v1/videos/${kind}`

/** Of what reads a video task, or does something about it, and makes none. */
export const VIDEO_TASK_READ = {
  method: 'GET',
  dialect: 'task',
  capability: 'none',
  billing: 'none',
  estimate: 'none',
  metricFamily: 'video',
  keyHeaders: ['authorization'],
  rateLimit: 'counted',
  bodyLimit: 0,
  loggedPath: 'path',
} as const satisfies Omit<EndpointSpec, 'name' | 'path' | 'documentation'>

export const MULTI_IMAGE_CALLBACKS = {
  ...VIDEO_TASK_READ,
  name: 'video.multi_image.callbacks',
  path: `${videoTaskPath('multi-image2video')}/:id/callbacks`,
  documentation: callbacksDocumentation('listMultiImageVideoCallbacks', 'multi-image'),
} as const satisfies EndpointSpec

export const TEXT_CALLBACKS = {
  ...VIDEO_TASK_READ,
  name: 'video.text.callbacks',
  path: `${videoTaskPath('text2video')}/:id/callbacks`,
  documentation: callbacksDocumentation('listTextVideoCallbacks', 'text'),
} as const satisfies EndpointSpec

export const REDELIVER_CALLBACK = {
  ...VIDEO_TASK_READ,
  name: 'video.callbacks.redeliver',
  method: 'POST',
  path: '/vidgen/v1/callbacks/:webhookId/redeliver',
  documentation: REDELIVER_DOCUMENTATION,
} as const satisfies EndpointSpec

/** Where upstreams announce a change. The token in the path is its only protection. */
export const UPSTREAM_CALLBACK = {
  ...VIDEO_TASK_READ,
  name: 'video.upstream_callback',
  method: 'POST',
  path: '/vidgen/callbacks/:token',
  keyHeaders: [],
  rateLimit: 'exempt',
  // A task object is a few kilobytes; more is not from an upstream.
  bodyLimit: 65_536,
  loggedPath: 'template',
  documentation: 'none',
} as const satisfies EndpointSpec

export const TASK_ENDPOINTS = [MULTI_IMAGE_CALLBACKS, TEXT_CALLBACKS, REDELIVER_CALLBACK, UPSTREAM_CALLBACK]
