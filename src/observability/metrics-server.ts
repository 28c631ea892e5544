import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { GatewayConfig } from '../config/settings.js'

const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'
/** A scraper sends a few hundred bytes and then only reads. */
const REQUEST_TIMEOUT_MS = 5_000
const HEADER_BYTES = 16_384
/** Far above the number of scrapers in use. */
const MAXIMUM_CONNECTIONS = 64

interface MetricsAddress {
  readonly host: string
  /** Absent = off. 0 = any free port. */
  readonly port?: number
}

/** The port is in use by another process; the message says what the operator can do. */
export class MetricsPortInUse extends Error {
  override readonly name = 'MetricsPortInUse'

  constructor(port: number) {
    super(`The port of the metrics (${port}) is in use. Choose another with METRICS_PORT=<number>; 0 switches it off.`)
  }
}

/** `GET /metrics` on a separate port, which should not be public. */
export class MetricsServer {
  private server: Server | undefined

  constructor(
    private readonly address: MetricsAddress,
    private readonly collectText: () => Promise<string>,
  ) {}

  /** Where it listens; undefined when it does not. */
  get port(): number | undefined {
    const address = this.server?.address() as AddressInfo | null | undefined
    return address?.port
  }

  /** Rejects with `MetricsPortInUse` when another process listens there. Does nothing when it is off or listens already. */
  async listen(): Promise<void> {
    const { host, port } = this.address
    if (port === undefined || this.server !== undefined) return
    const server = createServer(
      { maxHeaderSize: HEADER_BYTES, requestTimeout: REQUEST_TIMEOUT_MS, headersTimeout: REQUEST_TIMEOUT_MS },
      (request, response) => {
        void this.respond(request, response)
      },
    )
    server.maxConnections = MAXIMUM_CONNECTIONS
    server.listen(port, host)
    try {
      await once(server, 'listening')
    } catch (error) {
      throw isInUse(error) ? new MetricsPortInUse(port) : error
    }
    this.server = server
  }

  /** Closes connections, including active scrapes. */
  async close(): Promise<void> {
    const { server } = this
    this.server = undefined
    if (server === undefined) return
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  }

  private async respond({ method, url = '' }: IncomingMessage, response: ServerResponse): Promise<void> {
    const isKnown = url.split('?', 1)[0] === '/metrics'
    if (!isKnown) {
      sendText(response, 404, 'There is nothing at this path; the metrics are at /metrics.\n')
    } else if (method !== 'GET' && method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD')
      sendText(response, 405, 'Metrics are only read.\n')
    } else {
      await this.sendMetrics(response)
    }
  }

  private async sendMetrics(response: ServerResponse): Promise<void> {
    try {
      sendText(response, 200, await this.collectText(), CONTENT_TYPE)
    } catch {
      sendText(response, 500, 'The metrics could not be collected.\n')
    }
  }
}

function sendText(response: ServerResponse, status: number, text: string, type = 'text/plain; charset=utf-8'): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(text) })
  response.end(text)
}

const isInUse = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && 'code' in error && error.code === 'EADDRINUSE'

/** Where `/metrics` listens by the configuration; without a port when it is off. */
export const metricsAddress = ({
  server,
  observability,
}: Pick<GatewayConfig, 'server' | 'observability'>): MetricsAddress => ({
  host: observability.metricsHost,
  ...(server.metricsPort === 0 ? {} : { port: server.metricsPort }),
})
