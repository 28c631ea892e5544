import type { ServerResponse } from 'node:http'
import {
  Controller,
  type DynamicModule,
  Get,
  HttpStatus,
  Injectable,
  Module,
  type OnApplicationShutdown,
  type OnModuleInit,
  Res,
} from '@nestjs/common'
import { ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger'
import { ConfigStore } from '../config/config-store.js'
import { gatewayVersion, type Logger } from './logger.js'
import { byLabel, Metrics, registerCounter } from './metrics.js'
import { metricsAddress, MetricsServer } from './metrics-server.js'
import type { OtlpExporter, SpanCounts } from './otlp-exporter.js'
import { GatewayMetrics, ProcessMetrics } from './process-metrics.js'
import { Readiness } from './readiness.js'
import { RequestHooks } from './request-hooks.js'
import { AttemptMetrics, RequestMetrics } from './request-metrics.js'
import { KnownRoutes, KnownRoutesModule } from './routes.js'
import { beginTrace, RequestTrace, spansOf } from './tracing.js'

/** Injection token of the process log, for lines that concern no single request. */
export const LOGGER = Symbol('logger')

/** `Readiness`, `RequestHooks` and the logger are shared with the HTTP server, which answers before Nest does. */
@Module({})
export class ObservabilityModule {
  static forRoot(readiness: Readiness, hooks: RequestHooks, logger: Logger): DynamicModule {
    return {
      module: ObservabilityModule,
      global: true,
      providers: [
        { provide: Readiness, useValue: readiness },
        { provide: RequestHooks, useValue: hooks },
        Metrics,
        { provide: LOGGER, useValue: logger },
      ],
      exports: [Readiness, RequestHooks, Metrics, LOGGER],
    }
  }
}

/** Metrics and their server, which listens when `MetricsServer.listen` is called. */
@Module({
  imports: [KnownRoutesModule],
  providers: [
    AttemptMetrics,
    RequestMetrics,
    GatewayMetrics,
    ProcessMetrics,
    {
      provide: MetricsServer,
      inject: [ConfigStore, Metrics],
      useFactory: (store: ConfigStore, metrics: Metrics) =>
        new MetricsServer(metricsAddress(store.current), () => metrics.collectText()),
    },
  ],
})
export class MetricsModule {}

/** Maximum delay of a shutdown by a collector that does not answer. */
const CLOSE_DEADLINE_MS = 2_000

const NOTHING_SENT: SpanCounts = { sent: 0, failed: 0, dropped: 0 }

/**
 * Traces every request if a collector is configured: continues the caller's trace, passes each attempt's span to its
 * upstream, and sends the spans when the request is over. Without a collector nothing is loaded, observed or sent.
 */
@Injectable()
class Tracing implements OnModuleInit, OnApplicationShutdown {
  private sender: OtlpExporter | undefined

  constructor(
    private readonly store: ConfigStore,
    private readonly hooks: RequestHooks,
    private readonly known: KnownRoutes,
    metrics: Metrics,
  ) {
    registerCounter(
      metrics,
      {
        name: 'gateway_trace_spans_total',
        help: 'Spans sent to the collector, refused by it, or dropped because too many waited.',
        labelNames: ['outcome'],
      },
      () => byLabel('outcome', { ...(this.sender?.counts ?? NOTHING_SENT) }),
    )
  }

  async onModuleInit(): Promise<void> {
    const { otlpUrl, otlpHeaders } = this.store.current.observability
    if (otlpUrl === undefined) return
    const { OtlpExporter } = await import('./otlp-exporter.js')
    this.onFinished(new OtlpExporter({ url: otlpUrl, headers: otlpHeaders, version: gatewayVersion() }))
  }

  async onApplicationShutdown(): Promise<void> {
    await this.sender?.close(CLOSE_DEADLINE_MS)
  }

  private onFinished(sender: OtlpExporter): void {
    this.sender = sender
    this.hooks.onStarted((call, { headers }) => {
      call.trace = beginTrace(headers, this.store.current.observability.traceSampleRatio)
    })
    this.hooks.onFinished((call, outcome) => {
      const { trace } = call
      if (!(trace instanceof RequestTrace) || !trace.isSampled) return
      for (const span of spansOf(call, trace, outcome, this.known.table.find(call))) sender.send(span)
    })
  }
}

/** OpenTelemetry traces of calls, where a collector is configured. */
@Module({ imports: [KnownRoutesModule], providers: [Tracing] })
export class TracingModule {}

const STATUS_SCHEMA = { type: 'object', properties: { status: { type: 'string' } } }

@ApiTags('health')
@Controller('health')
class HealthController {
  constructor(private readonly readiness: Readiness) {}

  @Get('live')
  @ApiOperation({ summary: '200 while the process lives' })
  @ApiResponse({ status: 200, schema: STATUS_SCHEMA })
  live(): { status: string } {
    return { status: 'live' }
  }

  @Get('ready')
  @ApiOperation({ summary: '200 once the gateway can serve; 503 while it starts, drains or has lost its store' })
  @ApiResponse({ status: 200, schema: STATUS_SCHEMA })
  @ApiResponse({ status: 503, schema: STATUS_SCHEMA })
  ready(@Res({ passthrough: true }) response: ServerResponse): { status: string } {
    response.statusCode = this.readiness.isReady ? HttpStatus.OK : HttpStatus.SERVICE_UNAVAILABLE
    return { status: this.readiness.status }
  }
}

/** Liveness and readiness for operators' probes. */
@Module({ controllers: [HealthController] })
export class HealthModule {}
