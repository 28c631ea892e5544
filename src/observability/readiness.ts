import type { ServerResponse } from 'node:http'
import { Controller, Get, HttpStatus, Module, Res } from '@nestjs/common'
import type { RouteSpec } from '../core/endpoint.js'
import { answer, described } from '../core/json-schema.js'

/** As operators' probes read it. */
type LostStore = 'store_unreachable' | 'disk_full'

/** Whether this process should get traffic: not before it listens, while it drains, or without its store. */
export class Readiness {
  private state: 'starting' | 'ready' | 'leaving' | 'draining' = 'starting'
  private lostStore: LostStore | undefined
  private readonly drainListeners: (() => void)[] = []
  private readonly graceListeners: (() => void)[] = []

  get isReady(): boolean {
    return this.state === 'ready' && this.lostStore === undefined
  }

  /** True from the stop signal on: clients should use another process, while requests are still served. */
  get isLeaving(): boolean {
    return this.state === 'leaving' || this.state === 'draining'
  }

  get isDraining(): boolean {
    return this.state === 'draining'
  }

  get hasLostStore(): boolean {
    return this.lostStore !== undefined
  }

  get status(): string {
    if (this.state === 'leaving') return 'draining'
    return this.state === 'ready' ? (this.lostStore ?? 'ready') : this.state
  }

  markReady(): void {
    this.state = 'ready'
  }

  markLeaving(): void {
    this.state = 'leaving'
  }

  markDraining(): void {
    this.state = 'draining'
    for (const listener of this.drainListeners) listener()
  }

  /** Calls back when the drain begins: long-lived work should then end as soon as nothing is cut off by it. */
  onDraining(listener: () => void): void {
    this.drainListeners.push(listener)
  }

  /** The grace time of the drain is over. */
  markGraceOver(): void {
    for (const listener of this.graceListeners) listener()
  }

  /** Calls back when the grace time of the drain is over: all remaining work must end. */
  onGraceOver(listener: () => void): void {
    this.graceListeners.push(listener)
  }

  /** The store is in use and does not answer, or takes nothing more. */
  markStoreLost(why: LostStore = 'store_unreachable'): void {
    this.lostStore = why
  }

  markStoreBack(): void {
    this.lostStore = undefined
  }
}

const STATUS = {
  'application/json': answer('HealthStatus', 'How the process is', {
    status: described('live; or ready, starting, draining, store_unreachable, disk_full'),
  }),
}

const PROBE = {
  method: 'GET',
  dialect: 'openai',
  capability: 'none',
  keyHeaders: [],
  rateLimit: 'exempt',
  bodyLimit: 0,
} as const satisfies Omit<RouteSpec, 'path' | 'documentation'>

const LIVE: RouteSpec = {
  ...PROBE,
  path: '/health/live',
  documentation: {
    operationId: 'getLiveness',
    tag: 'health',
    summary: '200 while the process lives',
    description: 'For probes that start a process anew.',
    answer: { description: 'The process lives', content: STATUS },
  },
}

const READY: RouteSpec = {
  ...PROBE,
  path: '/health/ready',
  documentation: {
    operationId: 'getReadiness',
    tag: 'health',
    summary: '200 once the gateway can serve',
    description: 'For balancers. 503 while it starts, drains or has lost its store.',
    answer: { description: 'The gateway can serve', content: STATUS },
    otherAnswers: { 503: { description: 'It starts, drains or has lost its store', content: STATUS } },
  },
}

export const HEALTH_ROUTES: readonly RouteSpec[] = [LIVE, READY]

@Controller()
class HealthController {
  constructor(private readonly readiness: Readiness) {}

  @Get(LIVE.path)
  live(): { status: string } {
    return { status: 'live' }
  }

  @Get(READY.path)
  ready(@Res({ passthrough: true }) response: ServerResponse): { status: string } {
    response.statusCode = this.readiness.isReady ? HttpStatus.OK : HttpStatus.SERVICE_UNAVAILABLE
    return { status: this.readiness.status }
  }
}

/** Liveness and readiness for operators' probes. */
@Module({ controllers: [HealthController] })
export class HealthModule {}
