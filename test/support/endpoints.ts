import { readdirSync } from 'node:fs'
import { type Dialect, type EndpointSpec, EndpointTable } from '../../src/core/endpoint.js'
import { RequestContext } from '../../src/core/request-context.js'

const SOURCES = new URL('../../src/', import.meta.url)
const isSpec = (value: unknown): value is EndpointSpec => typeof value === 'object' && value !== null && 'path' in value

/** Every endpoint that a capability declares, without the modules that answer them. */
async function declaredEndpoints(): Promise<readonly EndpointSpec[]> {
  const files = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter((file) =>
    /\.endpoints?\.[jt]s$/.test(file),
  )
  const modules = await Promise.all(files.sort().map((file) => import(new URL(file, SOURCES).href) as Promise<object>))
  return modules.flatMap((members) => Object.values(members).filter(isSpec))
}

/** As the application's own table, in another order (test/spec/endpoints.spec.ts). */
export const ENDPOINTS = new EndpointTable(await declaredEndpoints())

/** The context of a request as the server makes it. */
export const contextAt = (method: string, path: string, requestId = 'req_1', startedAtMs = 0): RequestContext =>
  new RequestContext(requestId, method, path, startedAtMs, ENDPOINTS.find(path))

/** In which failures at a path are rendered. */
export const dialectOf = (path: string): Dialect => ENDPOINTS.dialectOf(path)
