import 'reflect-metadata'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import type { INestApplication } from '@nestjs/common'
import { createApplication } from '../../src/app/create-app.js'
import { parseConfig } from '../../src/config/load-config.js'
import { createLogging } from '../../src/observability/logger.js'
import { Readiness } from '../../src/observability/readiness.js'

/** The key that every test gateway accepts without limits, unless its configuration names others. */
export const TEST_KEY = 'test-gateway-key'

export interface TestGateway {
  /** `http://127.0.0.1:<port>` */
  readonly url: string
  readonly application: INestApplication
  readonly server: Server
  /** Everything logged so far, as one text; for canary searches. */
  readonly logText: () => string
  /** Resolves with the log line of the request with this id, once it is written. */
  readonly logLine: (requestId: string) => Promise<Record<string, unknown>>
  readonly close: () => Promise<void>
}

export interface TestGatewayOptions {
  readonly channels: readonly object[]
  readonly keys?: readonly object[]
  /** Further sections of the configuration, as in gateway.yaml. */
  readonly sections?: object
  /** Where the embedded store lies, and what could not be stored; by default a place of its own for each gateway. */
  readonly dataDirectory?: string
}

/** The gateway as in production, on a free port, configured through the same door as an operator's file. */
export async function startGateway({
  channels,
  keys,
  sections = {},
  dataDirectory,
}: TestGatewayOptions): Promise<TestGateway> {
  const document = { auth: { keys: keys ?? [{ id: 'test', key: TEST_KEY }] }, channels, ...sections }
  const lines = new PassThrough()
  let text = ''
  lines.on('data', (chunk: Buffer) => {
    text += chunk.toString()
    lines.emit('line')
  })
  // Nothing but the environment names it, and that is read while the application is made.
  const ownDirectory = join(tmpdir(), `gateway-without-data-${randomUUID()}`)
  process.env['GATEWAY_DATA'] = dataDirectory ?? process.env['GATEWAY_DATA'] ?? ownDirectory
  const application = await createApplication({
    config: parseConfig(JSON.stringify(document), {}),
    logging: createLogging('debug', lines),
    sandbox: false,
  })
  delete process.env['GATEWAY_DATA']
  await application.listen(0, '127.0.0.1')
  application.get(Readiness).announceReady()
  const server = application.getHttpServer() as Server
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    application,
    server,
    logText: () => text,
    logLine: async (requestId) => {
      for (;;) {
        const line = text.split('\n').find((candidate) => candidate.includes(`"requestId":"${requestId}"`))
        if (line !== undefined) return JSON.parse(line) as Record<string, unknown>
        await once(lines, 'line')
      }
    },
    close: async () => {
      server.closeAllConnections()
      await application.close()
      await rm(ownDirectory, { recursive: true, force: true })
    },
  }
}
