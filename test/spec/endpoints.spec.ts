import { readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { INestApplication } from '@nestjs/common'
import { HttpAdapterHost } from '@nestjs/core'
import type { Application } from 'express'
import { createApplication } from '../../src/app/create-app.js'
import { billable, ENDPOINTS } from '../../src/app/capabilities.js'
import { openApiDocument } from '../../src/app/openapi.js'
import { classServes, MODEL_CLASS_NAMES } from '../../src/config/model-classes.js'
import { type Dialect, dialectsOf, documentedPath, type EndpointSpec } from '../../src/core/endpoint.js'
import { createLogging } from '../../src/observability/logger.js'
import { routesOf } from '../../src/observability/routes.js'
import { REALTIME } from '../../src/realtime/realtime.endpoint.js'
import { parseConfig } from '../support/config.js'

/** Routes that are no endpoints: nothing of an endpoint's specification is true of them. */
const WITHOUT_SPECIFICATION: readonly (readonly [path: RegExp, reason: string])[] = [
  [/^\/health\//, 'probes have no key, no model and nothing to pay; overload lets them pass'],
  [/^\/admin\//, 'operators have a key of their own, and their calls are audited instead of counted'],
  [/^\/(docs(\/.*)?|openapi\.json)?$/, 'pages about the gateway, without a key'],
]

const withoutSpecification = (path: string): boolean => WITHOUT_SPECIFICATION.some(([pattern]) => pattern.test(path))

const routeOf = ({ method, path }: EndpointSpec): string => `${method} ${path}`

/** As docs/endpoints.md and the OpenAPI document spell it. */
const documentedRoute = (endpoint: EndpointSpec): string => documentedPath(routeOf(endpoint))

/** Upstreams alone know of it. */
const UNDOCUMENTED = ['POST /vidgen/callbacks/{token}']

const documented = ENDPOINTS.endpoints.filter((endpoint) => !UNDOCUMENTED.includes(documentedRoute(endpoint)))

describe('The endpoints', () => {
  let application: INestApplication
  let base: string

  beforeAll(async () => {
    const config = parseConfig('{}', {})
    application = await createApplication({ config, logging: createLogging('silent'), sandbox: false })
    await application.listen(0, '127.0.0.1')
    base = `http://127.0.0.1:${((application.getHttpServer() as Server).address() as AddressInfo).port}`
  })
  afterAll(() => application.close())

  it('are exactly the routes of the server, but for those with a reason to be none', () => {
    const routes = routesOf(application.get(HttpAdapterHost).httpAdapter.getInstance<Application>())
    const served = routes
      .filter(({ path }) => !withoutSpecification(path))
      .flatMap(({ path, methods }) => methods.map((method) => `${method} ${path}`))
    expect(served.sort()).toEqual(ENDPOINTS.endpoints.map(routeOf).sort())
    for (const [pattern] of WITHOUT_SPECIFICATION)
      expect(routes.filter(({ path }) => pattern.test(path))).not.toEqual([])
  })

  it('are none of those that have a reason', () => {
    expect(ENDPOINTS.endpoints.filter(({ path }) => withoutSpecification(path))).toEqual([])
  })

  it.each(
    ENDPOINTS.endpoints
      .filter(({ keyHeaders }) => keyHeaders.length > 0)
      .filter(({ name }) => name !== REALTIME.name)
      .map((endpoint) => [routeOf(endpoint), endpoint] as const),
  )(
    'refuse requests without a key and name the headers that may contain it: %s',
    async (_route, { method, path, keyHeaders }) => {
      const response = await fetch(base + path.replaceAll(/:\w+/g, 'x'), { method })
      expect(response.status).toBe(401)
      expect((await response.text()).includes('x-api-key')).toBe(keyHeaders.includes('x-api-key'))
    },
  )

  describe('in the OpenAPI document', () => {
    /** The name of the error body of each dialect. */
    const ERROR_BODIES: Readonly<Record<Dialect, string>> = {
      openai: 'OpenAIError',
      'openai-audio': 'OpenAIError',
      messages: 'MessagesError',
      task: 'TaskError',
      image: 'ImageError',
    }

    const { paths, components } = openApiDocument()

    it.each(documented.map((endpoint) => [routeOf(endpoint), endpoint] as const))(
      'have the errors of their dialect, and a key where they need one: %s',
      (_route, { dialect, ...endpoint }) => {
        const [method = '', path = ''] = documentedRoute({ dialect, ...endpoint }).split(' ')
        const operation = paths[path]?.[method.toLowerCase()]
        const errors = Object.entries(operation?.responses ?? {}).filter(([status]) => Number(status) >= 400)
        expect(errors.length).toBeGreaterThan(0)
        for (const [status, { $ref }] of errors) {
          const name = String($ref).split('/').at(-1) ?? ''
          expect(name.endsWith(status)).toBe(true)
          const bodies = dialectsOf({ dialect, ...endpoint }).map((one) => ({
            $ref: `#/components/schemas/${ERROR_BODIES[one]}`,
          }))
          const schema = bodies.length > 1 ? { anyOf: bodies } : bodies[0]
          expect(components.responses[name]).toMatchObject({ content: { 'application/json': { schema } } })
        }
        expect(operation?.security).toContainEqual({ bearer: [] })
      },
    )

    it('have the statuses of their dialect for a method that the path has not, and for a gateway that is full', () => {
      for (const { dialect, ...endpoint } of documented) {
        const [method = '', path = ''] = documentedRoute({ dialect, ...endpoint }).split(' ')
        const statuses = Object.keys(paths[path]?.[method.toLowerCase()]?.responses ?? {})
        expect(statuses).toEqual(expect.arrayContaining(['405', dialect === 'messages' ? '529' : '503']))
      }
    })

    it('are, with those of operators and of probes, exactly the routes that are served', () => {
      const shown = Object.entries(paths).flatMap(([path, methods]) =>
        Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
      )
      const served = routesOf(application.get(HttpAdapterHost).httpAdapter.getInstance<Application>()).flatMap(
        ({ path, methods }) => methods.map((method) => `${method} ${documentedPath(path)}`),
      )
      const others = served.filter((route) => !/ \/(docs(\/.*)?|openapi\.json|admin\/[*{].*)?$/.test(route))
      expect(shown.sort()).toEqual(others.filter((route) => !UNDOCUMENTED.includes(route)).sort())
    })
  })
})

describe('The page of endpoints', () => {
  const page = readFileSync(new URL('../../docs/endpoints.md', import.meta.url), 'utf8')
  /** The rows of the table of endpoints: the second cell is a route. */
  const rows = [...page.matchAll(/^\|([^|]+\| `[A-Z]+ \/.+)\|$/gm)]
  const records = new Map(
    rows.map(([, row = '']) => {
      const [, route = '', , recorded] = row.split('|').map((cell) => cell.trim().replaceAll('`', ''))
      return [route, recorded] as const
    }),
  )

  it.each(documented.map((endpoint) => [documentedRoute(endpoint), endpoint] as const))(
    'says what is recorded of %s',
    (route, { billing }) => {
      expect(records.get(route)).toBe(billing === 'none' ? '–' : billing.records.join(', '))
    },
  )

  it('says of no other route that anything of it is recorded', () => {
    const endpoints = new Set(documented.map(documentedRoute))
    const others = [...records].filter(([route]) => !endpoints.has(route))
    expect(others.length).toBeGreaterThan(0)
    for (const [, recorded] of others) expect(recorded).toBe('–')
  })
})

describe('Every class of models', () => {
  it.each(MODEL_CLASS_NAMES)('is named, or priced, by an endpoint that is billed: %s', (modelClass) => {
    const serves = (capability: string): boolean =>
      classServes(modelClass, capability) ||
      (capability === 'realtime' && classServes(modelClass, 'realtime_transcription'))
    const billed = ENDPOINTS.endpoints.filter(
      ({ billing, capability }) => billing !== 'none' && (serves(capability) || billing.usageClass === modelClass),
    )
    expect(billed).not.toEqual([])
  })
})

describe('An endpoint that is billed by a class of models', () => {
  it('has models of that class', () => {
    const billing = { records: ['request'], usageClass: 'chat', model: undefined } as const
    expect(() => billable({ ...REALTIME, name: 'things.find', capability: 'speech', billing })).toThrow(
      'The endpoint things.find is billed as chat, a class that none of its models has.',
    )
  })
})

describe('An endpoint that is asked with GET', () => {
  it('reads no body', () => {
    const asked = ENDPOINTS.endpoints.filter(({ method }) => method === 'GET')
    expect(asked.filter(({ bodyLimit }) => bodyLimit !== 0)).toEqual([])
  })
})
