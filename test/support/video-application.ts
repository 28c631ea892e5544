import 'reflect-metadata'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { AuthModule } from '../../src/auth/auth.module.js'
import { ConfigurationModule } from '../../src/config/config.module.js'
import { parseConfig } from '../../src/config/load-config.js'
import { BytesInFlight } from '../../src/core/memory-budget.js'
import { attachCall, Call } from '../../src/core/request-context.js'
import { createLogging } from '../../src/observability/logger.js'
import { ObservabilityModule } from '../../src/observability/observability.module.js'
import { Readiness } from '../../src/observability/readiness.js'
import { CallEndings } from '../../src/observability/request-hooks.js'
import { ProviderRouter } from '../../src/routing/router.js'
import { GatewayExceptionFilter } from '../../src/server/gateway-exception.filter.js'
import { GatewayHttpAdapter } from '../../src/server/http-adapter.js'
import { Tasks } from '../../src/tasks/tasks.js'
import { TextVideoController } from '../../src/video/text-video.controller.js'
import { UnknownTasks } from '../../src/video/unknown-tasks.js'
import { MultiImageVideoController } from '../../src/video/video.controller.js'
import { VideoService } from '../../src/video/video.service.js'
import { pngText } from './images.js'
import { type StandInChannel, StandInRouter, StandInTasks } from './video-stand-ins.js'

export const VIDEO_KEY = 'test-gateway-key'

export const MULTI_IMAGE_PATH = '/vidgen/v1/videos/multi-image2video'
export const TEXT_PATH = '/vidgen/v1/videos/text2video'
export const VIDEO_HEADERS = { authorization: `Bearer ${VIDEO_KEY}`, 'content-type': 'application/json' }

export const multiImageBody = (image = pngText()): string => JSON.stringify({ prompt: 'x', image_list: [{ image }] })

export interface VideoReply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly body: Record<string, unknown>
}

export interface VideoApplication {
  readonly url: string
  readonly tasks: StandInTasks
  readonly router: StandInRouter
  /** Calls that have begun, newest last. */
  readonly calls: readonly Call[]
  readonly get: (path: string) => Promise<VideoReply>
  readonly post: (path: string, body: string, headers?: Record<string, string>) => Promise<VideoReply>
  readonly close: () => Promise<void>
}

/** The video routes as they stand in the gateway, on stand-ins for what is behind them. */
export async function startVideoApplication(
  channels: readonly StandInChannel[],
  sections: object = {},
): Promise<VideoApplication> {
  const config = parseConfig(JSON.stringify({ auth: { keys: [{ id: 'test', key: VIDEO_KEY }] }, ...sections }), {})
  const tasks = new StandInTasks()
  const router = new StandInRouter(channels)
  const calls: Call[] = []

  @Module({
    imports: [
      ConfigurationModule.forRoot({ config }),
      ObservabilityModule.forRoot(new Readiness(), new CallEndings(), createLogging('silent').logger),
      AuthModule,
    ],
    controllers: [MultiImageVideoController, TextVideoController],
    providers: [
      VideoService,
      UnknownTasks,
      { provide: Tasks, useValue: tasks },
      { provide: ProviderRouter, useValue: router },
    ],
  })
  class VideoApplicationModule {}

  const memory = new BytesInFlight(() => config.admission)
  const adapter = new GatewayHttpAdapter((request, response) => {
    calls.push(begin(request, response, memory))
  })
  const application = await NestFactory.create(VideoApplicationModule, adapter, { bodyParser: false, logger: false })
  application.useGlobalFilters(new GatewayExceptionFilter())
  await application.listen(0, '127.0.0.1')
  const server = application.getHttpServer() as Server
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    tasks,
    router,
    calls,
    get: (path) => replyTo(`${url}${path}`, { headers: VIDEO_HEADERS }),
    post: (path, body, headers = {}) =>
      replyTo(`${url}${path}`, { method: 'POST', body, headers: { ...VIDEO_HEADERS, ...headers } }),
    close: async () => {
      server.closeAllConnections()
      await application.close()
    },
  }
}

async function replyTo(url: string, init: RequestInit): Promise<VideoReply> {
  const response = await fetch(url, init)
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: JSON.parse(text) as Record<string, unknown> }
}

function begin(request: IncomingMessage, response: ServerResponse, memory: BytesInFlight): Call {
  const call = new Call('req_1', request.method ?? '', (request.url ?? '').split('?')[0] ?? '', performance.now())
  call.memory = memory
  attachCall(request, call)
  response.once('close', () => {
    if (!response.writableFinished) call.departure.announce()
    memory.close(call)
  })
  return call
}
