import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { INestApplication } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { DocumentBuilder, type OpenAPIObject, SwaggerModule } from '@nestjs/swagger'
import { keyFault } from '../auth/key.guard.js'
import { KeyTable } from '../auth/key-table.js'
import { ConfigStore, type ConfigurationOptions } from '../config/config-store.js'
import type { GatewayConfig } from '../config/settings.js'
import { type Dialect, endpointFor, type EndpointSpec, type PathMatch } from '../core/endpoint.js'
import { GatewayError } from '../core/errors.js'
import { attachContext, isOwnRequestId, newRequestId, RequestContext, requestIdOf } from '../core/request-context.js'
import { settleUsage } from '../core/usage.js'
import { ERROR_FORMATS } from '../dialects/error-format.js'
import { logRequest, RefusalLines } from '../observability/access-log.js'
import { type Logging, NestLogger } from '../observability/logger.js'
import { Readiness } from '../observability/readiness.js'
import { RequestHooks, outcomeOf } from '../observability/request-hooks.js'
import { Admission, shareOfAdmission, workersIn } from '../overload/admission.js'
import { BudgetLease } from '../overload/memory-budget.js'
import { CallerAtDoor, type DoorHeaders, doorHeadersOf } from '../overload/caller-at-door.js'
import { KnownRefusals } from '../overload/known-refusals.js'
import { RequestGate } from '../overload/request-gate.js'
import { callerAddress, isFromThisMachine, rememberPeers } from '../server/client-address.js'
import { GatewayExceptionFilter, sendError } from '../server/error-filter.js'
import { GatewayHttpAdapter, type RequestStart } from '../server/http-adapter.js'
import { hasKey, type KeyTest, maskedPath, originForm, pathOf, requestFault } from '../server/request-target.js'
import { GatewayWsAdapter, type SocketLimits } from '../server/ws-adapter.js'
import { AppModule } from './app.module.js'
import { ENDPOINTS } from './capabilities.js'

/** Interface version of the specification's audio part; the document's own version. */
const INTERFACE_VERSION = '2026-04'

/** The OpenAPI 3.1 document, made from the DTOs that also check the requests. */
export function openApiDocument(application: INestApplication): OpenAPIObject {
  const configuration = new DocumentBuilder()
    .setOpenAPIVersion('3.1.0')
    .setTitle('Multi-Model Gateway')
    .setDescription('Many AI upstreams behind one address and one key.')
    .setVersion(INTERFACE_VERSION)
    .addBearerAuth()
    .addApiKey({ type: 'apiKey', name: 'x-api-key', in: 'header' }, 'x-api-key')
    .build()
  return SwaggerModule.createDocument(application, configuration)
}

/** `/docs` for people, `/docs/openapi.json` for tools. */
function serveDocumentation(application: INestApplication, settings: { readonly current: GatewayConfig }): void {
  application.use('/docs', (request: IncomingMessage, _response: ServerResponse, next: (error?: Error) => void) => {
    const { docs } = settings.current.server
    const isShown = docs === 'public' || (docs === 'local' && isFromThisMachine(request))
    next(isShown ? undefined : new GatewayError('not_found', 'There is nothing at this path.'))
  })
  SwaggerModule.setup('docs', application, () => openApiDocument(application), {
    jsonDocumentUrl: 'docs/openapi.json',
    yamlDocumentUrl: 'docs/openapi.yaml',
  })
}

const STUCK_MARGIN_MS = 30_000
const SWITCHING_PROTOCOLS = 101
const FIRST_ERROR_STATUS = 400

const nowMs = (): number => performance.now()

const dialectOf = (path: string): Dialect => ENDPOINTS.dialectOf(path)

interface ApplicationOptions extends ConfigurationOptions {
  readonly logging: Logging
  /** Also adds `x-gateway-sandbox: true` to every response. */
  readonly sandbox: boolean
}

/** The application as it runs in production and in every e2e test; not listening yet. */
export async function createApplication(options: ApplicationOptions): Promise<INestApplication> {
  const { logging, ...configuration } = options
  const { sandbox } = configuration
  const readiness = new Readiness()
  const hooks = new RequestHooks()
  const settings = {
    current: options.config,
    admission: shareOfAdmission(options.config),
    isKey: (_text: string) => false,
    keyIdOf: (_token: string): string | undefined => undefined,
    keyFault: (_door: DoorHeaders, _endpoint: EndpointSpec): GatewayError | undefined => undefined,
  }
  const admission = new Admission(() => settings.admission, { workers: workersIn(options.config) })
  const adapter: GatewayHttpAdapter = new GatewayHttpAdapter(
    requestStart({
      logging,
      sandbox,
      readiness,
      hooks,
      admission,
      settings,
      lastResponse: (on) => adapter.lastResponse(on),
    }),
    () => {
      serveDocumentation(application, settings)
    },
    dialectOf,
  )
  const application: INestApplication = await NestFactory.create(
    AppModule.forRoot(configuration, readiness, hooks, admission, logging.logger),
    adapter,
    {
      bodyParser: false,
      logger: new NestLogger(logging.logger),
    },
  )
  application.useWebSocketAdapter(new GatewayWsAdapter(adapter, () => socketLimits(application)))
  application.useGlobalFilters(new GatewayExceptionFilter())
  application.get(ConfigStore).onChange((next) => {
    settings.current = next
    settings.admission = shareOfAdmission(next)
  })
  await application.init()
  endStuckConnections(application)
  const keys = application.get(KeyTable)
  settings.isKey = (text) => keys.knows(text)
  settings.keyIdOf = (token) => keys.idOf(token)
  settings.keyFault = (door, endpoint) => keyFault(keys, door, endpoint)
  rememberPeers(application.getHttpServer() as Server)
  return application
}

/** Current limits; open sockets keep those they were opened with. */
function socketLimits(application: INestApplication): SocketLimits {
  const { realtimeFrameBytes, realtimeFragments } = application.get(ConfigStore).current.limits
  return { messageBytes: realtimeFrameBytes, fragments: realtimeFragments }
}

/**
 * A client that neither reads nor disconnects keeps a response in memory. No valid connection is silent for longer than the total
 * timeout of a request: streams carry keep-alives, and waiting for an upstream ends with it.
 */
function endStuckConnections(application: INestApplication): void {
  const { totalMs } = application.get(ConfigStore).current.timeouts
  const server = application.getHttpServer() as Server
  server.setTimeout(totalMs + STUCK_MARGIN_MS)
}

const shownId = (id: string, isKey: KeyTest): string => (!isOwnRequestId(id) && hasKey(id, isKey) ? newRequestId() : id)

/** What is known of a path; of one that no template spells in full, the log shows no key that stands in it. */
function shownMatch(path: string, isKey: KeyTest): PathMatch {
  const match = ENDPOINTS.find(path)
  if (match.loggedPath !== undefined || match.endpoints[0]?.path === path) return match
  const shown = maskedPath(path, isKey)
  return shown === path ? match : { ...match, loggedPath: shown }
}

interface RequestStartParts {
  readonly logging: Logging
  readonly sandbox: boolean
  readonly readiness: Readiness
  readonly hooks: RequestHooks
  readonly admission: Admission
  readonly settings: {
    readonly current: GatewayConfig
    readonly isKey: KeyTest
    readonly keyIdOf: (token: string) => string | undefined
    readonly keyFault: (door: DoorHeaders, endpoint: EndpointSpec) => GatewayError | undefined
  }
  readonly lastResponse: (socket: Socket) => ServerResponse | undefined
}

/** Admits requests; creates each request's context, and its log line when the response is over. */
function requestStart(parts: RequestStartParts): RequestStart {
  const { logging, sandbox, readiness, hooks, admission, settings, lastResponse } = parts
  const callers = new CallerAtDoor(
    (token) => settings.keyIdOf(token),
    () => settings.current.server.trustedProxies,
  )
  const known = new KnownRefusals({
    keyFault: (door, endpoint) => settings.keyFault(door, endpoint),
    onRepeated: (call, outcome, times) => {
      hooks.repeated(call, outcome, times)
    },
    nowMs,
  })
  hooks.countWhenAsked(known.report)
  const gate = new RequestGate({
    ...{ admission, known, lastResponse, dialectOf, nowMs },
    mayBeBare: () => !sandbox && !readiness.isLeaving,
    endpointOf: (method, path) => endpointFor(ENDPOINTS.find(path), method),
    sharerOf: (door) => callers.of(door),
  })
  const refusalLines = new RefusalLines(logging.logger)
  hooks.onRepeated((_call, _outcome, times) => {
    refusalLines.omit(times)
  })
  return (request: IncomingMessage, response: ServerResponse): boolean => {
    request.url = originForm(request.url ?? '')
    const path = pathOf(request.url)
    const door = doorHeadersOf(request)
    const sharer = callers.of(door)
    if (known.isBusy) {
      const endpoint = endpointFor(ENDPOINTS.find(path), request.method ?? '')
      if (gate.refuseLikeOthers(endpoint, sharer, door, request, response)) return false
    }
    const decision = gate.check(path, sharer)
    if (decision !== 'let_in' && gate.refuseBarely(decision, path, request, response)) return false
    const requestId = shownId(requestIdOf(request), settings.isKey)
    const match = shownMatch(path, settings.isKey)
    const call = new RequestContext(requestId, request.method ?? '', path, performance.now(), match)
    call.isExplained = settings.current.server.explainHeaders
    const memory = new BudgetLease(admission.memory, call)
    call.memory = memory
    attachContext(request, call)
    hooks.begun(call, request)
    const { requestIdHeader } = ERROR_FORMATS[call.dialect]
    if (requestIdHeader !== undefined) call.responseHeaders[requestIdHeader] = call.requestId
    if (sandbox) call.responseHeaders['x-gateway-sandbox'] = 'true'
    // Clients with kept-alive connections must find another replica for their next request.
    if (readiness.isLeaving) call.responseHeaders['connection'] = 'close'
    let isOver = false
    const finish = (): void => {
      if (isOver) return
      isOver = true
      if (!response.writableFinished && response.statusCode !== SWITCHING_PROTOCOLS) call.disconnect.abort()
      call.disconnect.whenReleased(settle)
    }
    const settle = (): void => {
      settleUsage(call.log)
      const outcome = outcomeOf(call, response)
      if (outcome.status >= FIRST_ERROR_STATUS) {
        call.log.callerAddress = callerAddress(request, settings.current.server.trustedProxies)
      }
      logRequest(call, outcome, logging, refusalLines)
      hooks.over(call, outcome)
      known.learn(call, outcome)
      memory.close()
      if (decision === 'let_in') gate.end(path, sharer)
    }
    response.on('close', finish)
    if (decision !== 'let_in') {
      gate.refuse(decision, call, request, response)
      return false
    }
    const fault = requestFault(request)
    if (fault !== undefined) sendError(fault, call, request, response)
    return fault === undefined
  }
}
