import { describe, expect, it } from '@jest/globals'
import { endpointFor, type EndpointSpec, EndpointTable, UNKNOWN_PATH } from './endpoint.js'

const LIST = {
  name: 'things.list',
  method: 'GET',
  path: '/v1/things',
  dialect: 'messages',
  capability: 'none',
  billing: 'none',
  estimate: 'none',
  metricFamily: 'other',
  keyHeaders: ['authorization'],
  rateLimit: 'counted',
  bodyLimit: 0,
  loggedPath: 'path',
  documentation: 'none',
} as const satisfies EndpointSpec

const CREATE: EndpointSpec = { ...LIST, name: 'things.create', method: 'POST', metricFamily: 'thing' }
const FIND: EndpointSpec = { ...LIST, name: 'things.find', path: '/v1/things/:id' }
const HOOK: EndpointSpec = { ...LIST, name: 'hook', path: '/hooks/:token', dialect: 'task', loggedPath: 'template' }

const table = new EndpointTable([LIST, CREATE, FIND, HOOK])

const nameAt = (method: string, path: string): string | undefined => endpointFor(table.find(path), method)?.name

describe('The endpoint of a request', () => {
  it.each([
    ['GET', '/v1/things', 'things.list'],
    ['HEAD', '/v1/things', 'things.list'],
    ['POST', '/v1/things', 'things.create'],
    ['GET', '/v1/things/7', 'things.find'],
    ['HEAD', '/v1/things/7', 'things.find'],
  ])('is, of %s %s, %s', (method, path, name) => {
    expect(nameAt(method, path)).toBe(name)
  })

  it.each([
    ['DELETE', '/v1/things'],
    ['get', '/v1/things'],
    ['POST', '/v1/things/7'],
    ['GET', '/v1/things/'],
    ['GET', '/v1/things/7/8'],
    ['GET', '/v1/Things'],
    ['GET', '/hooks/a/b'],
    ['GET', ''],
  ])('is none, of %s %s', (method, path) => {
    expect(nameAt(method, path)).toBeUndefined()
  })
})

describe('The dialect of a path', () => {
  it.each([
    ['/v1/things', 'messages'],
    ['/v1/things/', 'messages'],
    ['/v1/things/7', 'messages'],
    ['/v1/things/7/8', 'messages'],
    ['/v1/thingsx', 'openai'],
    ['/v1', 'openai'],
    ['/v1/', 'openai'],
    ['/v2/things', 'openai'],
    ['/hooks', 'task'],
    ['/hooks/', 'task'],
    ['/hooks/a/b', 'task'],
    ['/hooksx/a', 'openai'],
    ['//hooks/a', 'openai'],
    ['hooks/a', 'openai'],
    ['', 'openai'],
  ])('is, of %j, %s', (path, dialect) => {
    expect([table.find(path).dialect, table.dialectOf(path)]).toEqual([dialect, dialect])
  })
})

describe('A path with a secret', () => {
  it.each(['/hooks/secret', '/hooks/secret/more', '/hooks/'])('is never logged: %s', (path) => {
    expect(table.find(path).loggedPath).toBe('/hooks/:token')
  })

  it.each(['/v1/things/7', '/hooks', '/hooksx/secret', '/nowhere'])('is another than %s', (path) => {
    expect(table.find(path).loggedPath).toBeUndefined()
  })
})

describe('The metric families', () => {
  it('are those of the endpoints, with other at the end', () => {
    expect(table.metricFamilies).toEqual(['thing', 'other'])
  })

  it('are known by template', () => {
    const alone = new EndpointTable([CREATE])
    expect([alone.metricFamilyOf('/v1/things'), alone.metricFamilyOf('/admin/*path')]).toEqual(['thing', 'other'])
  })
})

describe('A table of endpoints', () => {
  it('knows nothing by itself', () => {
    expect(new EndpointTable([]).find('/v1/things')).toBe(UNKNOWN_PATH)
  })

  it.each<[string, EndpointSpec, RegExp]>([
    ['two with one name', { ...FIND, name: LIST.name }, /Two endpoints are called things\.list/],
    ['two with one method and path', { ...LIST, name: 'again' }, /Two endpoints are called GET \/v1\/things/],
    [
      'two dialects under one prefix',
      { ...FIND, dialect: 'task' },
      /things\.find has the dialect task, others under \/v1\/things have messages/,
    ],
  ])('refuses %s', (_what, endpoint, message) => {
    expect(() => new EndpointTable([LIST, endpoint])).toThrow(message)
  })
})
