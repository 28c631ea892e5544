import type { Server } from 'node:http'
import type { INestApplication } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { KeyTable } from '../auth/key-table.js'
import { ConfigStore, type ConfigurationOptions } from '../config/config-store.js'
import type { GatewayConfig } from '../config/settings.js'
import { type Logging, NestLogger } from '../observability/logger.js'
import { Readiness } from '../observability/readiness.js'
import { RequestHooks } from '../observability/request-hooks.js'
import { Admission, shareOfAdmission, workersIn } from '../overload/admission.js'
import { rememberPeers } from '../server/client-address.js'
import { GatewayExceptionFilter } from '../server/error-filter.js'
import { GatewayHttpAdapter } from '../server/http-adapter.js'
import { GatewayWsAdapter, type SocketLimits } from '../server/ws-adapter.js'
import { UnknownPaths } from '../server/unknown-path.js'
import { AppModule } from './app.module.js'
import { ENDPOINTS } from './capabilities.js'
import { PAGES, serveDocumentation } from './documentation.js'
import { dialectOf, requestStart } from './request-start.js'

const STUCK_MARGIN_MS = 30_000

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
  const settings: {
    current: GatewayConfig
    admission: ReturnType<typeof shareOfAdmission>
    keys: KeyTable | undefined
  } = {
    current: options.config,
    admission: shareOfAdmission(options.config),
    keys: undefined,
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
  application.useGlobalFilters(
    new GatewayExceptionFilter(new UnknownPaths(publicPaths(), (text) => settings.keys?.knows(text) === true)),
  )
  application.get(ConfigStore).onChange((next) => {
    settings.current = next
    settings.admission = shareOfAdmission(next)
  })
  await application.init()
  endStuckConnections(application)
  settings.keys = application.get(KeyTable)
  rememberPeers(application.getHttpServer() as Server)
  return application
}

/** What a client that has lost its way may be pointed to: no path that only upstreams or operators know. */
const publicPaths = (): readonly string[] => [
  ...ENDPOINTS.endpoints.filter(({ documentation }) => documentation !== 'none').map(({ path }) => path),
  ...PAGES,
]

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
