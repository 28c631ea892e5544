import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { keyFault } from '../auth/key.guard.js'
import type { KeyTable } from '../auth/key-table.js'
import type { GatewayConfig } from '../config/settings.js'
import { type Dialect, dialectFor, DIALECT_HEADERS } from '../core/endpoint.js'
import { hasKey, maskedName, maskedPath } from '../core/key-mask.js'
import { attachContext, RequestContext, requestIdOf } from '../core/request-context.js'
import { processClock } from '../core/time.js'
import { settleUsage } from '../core/usage.js'
import { ERROR_FORMATS } from '../dialects/error-format.js'
import { AccessLog } from '../observability/access-log.js'
import type { Logging } from '../observability/logger.js'
import type { Readiness } from '../observability/readiness.js'
import { outcomeOf, type RequestHooks } from '../observability/request-hooks.js'
import type { Admission } from '../overload/admission.js'
import { type CallerHeaders, callerHeadersOf, CallerResolver, sentKeyOf } from '../overload/caller-resolver.js'
import { KnownRefusals } from '../overload/known-refusals.js'
import { BudgetLease } from '../overload/memory-budget.js'
import { RequestGate } from '../overload/request-gate.js'
import { callerAddress } from '../server/client-address.js'
import { addHeaders, corsHeaders, isPreflight, preflightFault, preflightHeaders } from '../server/cors.js'
import { endResponse, sendError } from '../server/error-filter.js'
import type { RequestStart } from '../server/http-adapter.js'
import { foreignHostFault, originForm, pathOf, requestFault } from '../server/request-target.js'
import { isOwnMachine } from '../upstream/ssrf-guard.js'
import { ENDPOINTS } from './capabilities.js'

const SWITCHING_PROTOCOLS = 101
const NO_CONTENT = 204
const FIRST_ERROR_STATUS = 400

export const dialectOf = (path: string, isOfMessages?: boolean): Dialect => ENDPOINTS.dialectOf(path, isOfMessages)

interface RequestStartParts {
  readonly logging: Logging
  readonly sandbox: boolean
  readonly readiness: Readiness
  readonly hooks: RequestHooks
  readonly admission: Admission
  /** `keys` is there before the server listens. */
  readonly settings: { readonly current: GatewayConfig; readonly keys: KeyTable | undefined }
  readonly lastResponse: (socket: Socket) => ServerResponse | undefined
}

/** What decides of a request before it has a context of its own. */
function gateOf({ sandbox, readiness, hooks, admission, settings, lastResponse }: RequestStartParts) {
  const callers = new CallerResolver(
    (sha256) => settings.keys?.idOf(sha256),
    () => settings.current.server.trustedProxies,
  )
  const known = new KnownRefusals({
    keyFault: (headers, endpoint) => settings.keys && keyFault(settings.keys, headers, endpoint),
    onRepeated: (call, outcome, times) => {
      hooks.repeated(call, outcome, times)
    },
    nowMs: processClock,
  })
  hooks.countWhenAsked(known.report)
  const gate = new RequestGate({
    ...{ admission, known, lastResponse, dialectOf },
    nowMs: processClock,
    mayBeBare: () => !sandbox && !readiness.isLeaving,
    matchOf: (path) => ENDPOINTS.find(path),
    sharerOf: (headers) => callers.of(headers, sentKeyOf(headers)),
    corsHeadersOf: (origin) => corsHeaders(settings.current.server.cors, origin),
  })
  return { callers, known, gate }
}

/** Ids that gateways, balancers and SDKs make: no digest is made of them, nor of a key that looks like one. */
const USUAL_ID = /^(?:req_[0-9a-f]{32}|(?:req_)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i

/** Admits requests; creates each request's context, and its log line when the response is over. */
export function requestStart(parts: RequestStartParts): RequestStart {
  const { logging, hooks, admission, settings, sandbox } = parts
  const { callers, known, gate } = gateOf(parts)
  const isKey = (text: string): boolean => settings.keys?.knows(text) === true
  const shownName = (name: string): string => maskedName(name, isKey)
  const accessLog = new AccessLog(logging, (path) => maskedPath(path, isKey), shownName)
  hooks.onRepeated((_call, _outcome, times) => {
    accessLog.omit(times)
  })

  /** A key that was sent as an id stands nowhere. */
  const isSecret = (id: string): boolean => !USUAL_ID.test(id) && hasKey(id, isKey)

  const settle = (call: RequestContext, request: IncomingMessage, response: ServerResponse): void => {
    settleUsage(call.log, !call.disconnect.aborted && call.log.failure === undefined)
    const outcome = outcomeOf(call, response)
    if (outcome.status >= FIRST_ERROR_STATUS) {
      call.log.callerAddress = callerAddress(request, settings.current.server.trustedProxies)
      // Models that are served come from the configuration: of them nothing is looked up.
      if (call.log.model !== undefined) call.log.model = shownName(call.log.model)
    }
    accessLog.write(call, outcome)
    hooks.over(call, outcome)
    known.learn(call, outcome)
  }

  return (request: IncomingMessage, response: ServerResponse): boolean => {
    request.url = originForm(request.url ?? '')
    const path = pathOf(request.url)
    const headers = callerHeadersOf(request)
    const key = sentKeyOf(headers)
    const sharer = callers.of(headers, key)
    if (known.isBusy && gate.refuseLikeOthers(path, sharer, headers, request, response)) return false
    const decision = gate.check(path, sharer)
    if (decision !== 'let_in' && gate.refuseBarely(decision, path, headers, request, response)) return false
    const call = beginCall(parts, requestIdOf(request, isSecret), request, path, headers)
    call.sentKey = key
    const { cors, host } = settings.current.server
    addHeaders(call.responseHeaders, corsHeaders(cors, request.headers.origin))
    const memory = new BudgetLease(admission.memory, call)
    call.memory = memory
    whenOver(call, response, () => {
      settle(call, request, response)
      memory.close()
      if (decision === 'let_in') gate.end(path, sharer, call.log.bytesIn + call.log.bytesOut)
    })
    if (decision !== 'let_in') {
      gate.refuse(decision, call, request, response)
      return false
    }
    const isAsking = isPreflight(request)
    const fault =
      requestFault(request) ??
      (sandbox && isOwnMachine(host) ? foreignHostFault(request) : undefined) ??
      (isAsking ? preflightFault(cors, request) : undefined)
    if (fault !== undefined) sendError(fault, call, request, response)
    else if (isAsking) answerPreflight(request, response, call, preflightHeaders(cors, request, methodsAt(path)))
    return fault === undefined && !isAsking
  }
}

/** The question is answered before the request goes on to routes, which know no `OPTIONS`. */
function answerPreflight(
  request: IncomingMessage,
  response: ServerResponse,
  call: RequestContext,
  headers: Readonly<Record<string, string>>,
): void {
  addHeaders(call.responseHeaders, headers)
  response.writeHead(NO_CONTENT)
  endResponse('', request, response)
}

/** Empty where nothing is known of the path. */
function methodsAt(path: string): readonly string[] {
  const methods = ENDPOINTS.find(path).endpoints.map(({ method }) => method)
  return methods.includes('GET') ? [...methods, 'HEAD'] : methods
}

function beginCall(
  { sandbox, readiness, hooks, settings }: RequestStartParts,
  requestId: string,
  request: IncomingMessage,
  path: string,
  { isOfMessages }: CallerHeaders,
): RequestContext {
  const match = ENDPOINTS.find(path)
  const dialect = dialectFor(match, isOfMessages)
  const call = new RequestContext(requestId, request.method ?? '', path, processClock(), match, dialect)
  call.isExplained = settings.current.server.explainHeaders
  attachContext(request, call)
  hooks.begun(call, request)
  const { requestIdHeader } = ERROR_FORMATS[call.dialect]
  if (requestIdHeader !== undefined) call.responseHeaders[requestIdHeader] = call.requestId
  if (match.isShared && match.endpoints.length > 0) call.responseHeaders['vary'] = DIALECT_HEADERS
  if (sandbox) call.responseHeaders['x-gateway-sandbox'] = 'true'
  // Clients with kept-alive connections must find another replica for their next request.
  if (readiness.isLeaving) call.responseHeaders['connection'] = 'close'
  return call
}

/** Calls `settle` once, when the response is over and nothing is read for its usage any more. */
function whenOver(call: RequestContext, response: ServerResponse, settle: () => void): void {
  let isOver = false
  response.on('close', () => {
    if (isOver) return
    isOver = true
    if (!response.writableFinished && response.statusCode !== SWITCHING_PROTOCOLS) call.disconnect.abort()
    call.disconnect.whenReleased(settle)
  })
}
