import type { IncomingMessage, ServerResponse } from 'node:http'
import type { INestApplication } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { AppModule } from './app.module.js'
import { envelopeFor } from './common/errors/envelope-choice.js'
import { GatewayExceptionFilter } from './common/errors/gateway-exception.filter.js'
import { attachCall, Call } from './common/http/call.js'
import { GatewayHttpAdapter, type RequestStart } from './common/http/gateway-http.adapter.js'
import { requestIdOf } from './common/http/request-id.js'
import { logCall } from './common/observability/call-log.js'
import type { Logging } from './common/observability/logger.js'
import { NestLogger } from './common/observability/nest-logger.js'
import { Readiness } from './common/observability/readiness.js'
import type { ConfigurationOptions } from './config/config.module.js'
import { serveDocumentation } from './openapi.js'

export interface ApplicationOptions extends ConfigurationOptions {
  readonly logging: Logging
  /** Marks every answer with `x-gateway-sandbox: true`. */
  readonly sandbox: boolean
}

/** The application as it runs in production and in every e2e test; not listening yet. */
export async function createApplication(options: ApplicationOptions): Promise<INestApplication> {
  const { logging, sandbox, ...configuration } = options
  const readiness = new Readiness()
  const adapter = new GatewayHttpAdapter(requestStart(logging, sandbox, readiness), () => {
    serveDocumentation(application)
  })
  const application: INestApplication = await NestFactory.create(AppModule.forRoot(configuration, readiness), adapter, {
    bodyParser: false,
    logger: new NestLogger(logging.logger),
  })
  application.useGlobalFilters(new GatewayExceptionFilter())
  await application.init()
  return application
}

/** Gives every request its id, its call and, when its response is over, its log line. */
function requestStart(logging: Logging, sandbox: boolean, readiness: Readiness): RequestStart {
  return (request: IncomingMessage, response: ServerResponse): void => {
    const path = pathOf(request.url ?? '')
    const call = new Call(requestIdOf(request), request.method ?? '', path, performance.now())
    attachCall(request, call)
    const { requestIdHeader } = envelopeFor(path)
    if (requestIdHeader !== undefined) call.answerHeaders[requestIdHeader] = call.requestId
    if (sandbox) call.answerHeaders['x-gateway-sandbox'] = 'true'
    // Clients with kept-alive connections must find another replica for their next request.
    if (readiness.isDraining) call.answerHeaders['connection'] = 'close'
    response.once('close', () => {
      if (!response.writableFinished) call.departure.announce()
      logCall(call, response, logging)
    })
  }
}

function pathOf(url: string): string {
  const query = url.indexOf('?')
  return query === -1 ? url : url.slice(0, query)
}
