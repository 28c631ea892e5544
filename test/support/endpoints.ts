import { ENDPOINTS } from '../../src/app/endpoints.js'
import type { Dialect } from '../../src/core/endpoint.js'
import { RequestContext } from '../../src/core/request-context.js'

/** The context of a request as the server makes it. */
export const contextAt = (method: string, path: string, requestId = 'req_1', startedAtMs = 0): RequestContext =>
  new RequestContext(requestId, method, path, startedAtMs, ENDPOINTS.find(path))

/** In which failures at a path are rendered. */
export const dialectOf = (path: string): Dialect => ENDPOINTS.dialectOf(path)
