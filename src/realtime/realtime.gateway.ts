import type { IncomingMessage } from 'node:http'
import { Inject } from '@nestjs/common'
import { type OnGatewayConnection, WebSocketGateway } from '@nestjs/websockets'
import type { WebSocket } from 'ws'
import { ConfigStore } from '../config/config-store.js'
import { UsageRecorder } from '../core/usage-record.js'
import { ClientDialect } from '../dialects/realtime/dialect.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { offeredSubprotocols, type SocketGatewayOptions } from '../server/ws-adapter.js'
import { REALTIME } from './realtime.endpoint.js'
import type { OpenedSession } from './realtime.service.js'
import { type SessionContext, type SessionOpening, SessionTraffic } from './session-context.js'
import { RealtimeSession } from './session.js'

/** Runs the sessions (specification: Realtime voice) that `RealtimeController` has admitted. */
@WebSocketGateway<SocketGatewayOptions>({ path: REALTIME.path, subprotocol: 'realtime' })
export class RealtimeGateway implements OnGatewayConnection<WebSocket> {
  constructor(
    private readonly store: ConfigStore,
    private readonly recorder: UsageRecorder,
    private readonly traffic: SessionTraffic,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** `finish` writes the request's log line. */
  handleConnection(client: WebSocket, request: IncomingMessage, opened: OpenedSession, finish: () => void): void {
    client.pause()
    const { slot, upstream, ...opening } = opened
    const session = new RealtimeSession(client, upstream, this.contextFor(request, opening))
    void session.ended.then(() => {
      slot.free()
      finish()
      this.logger.info({ requestId: opened.call.requestId, cause: session.endCause }, 'session ended')
    })
    session.start()
    slot.occupy(session)
  }

  private contextFor(request: IncomingMessage, opening: SessionOpening): SessionContext {
    const { limits, server, timeouts } = this.store.current
    return {
      ...opening,
      requestId: opening.call.requestId,
      keyId: opening.call.caller.keyId,
      clientDialect: ClientDialect.ofHandshake({
        betaHeader: betaHeaderOf(request),
        protocols: offeredSubprotocols(request),
        assumed: server.realtimeClientDialect,
      }),
      limits: { ...limits, ...timeouts },
      recorder: this.recorder,
      traffic: this.traffic,
      logger: this.logger,
    }
  }
}

function betaHeaderOf({ headers }: IncomingMessage): string | undefined {
  const header = headers['openai-beta']
  return typeof header === 'string' ? header : header?.join(',')
}
