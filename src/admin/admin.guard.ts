import type { IncomingMessage } from 'node:http'
import { type CanActivate, createParamDecorator, type ExecutionContext, Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { GatewayError } from '../core/gateway-error.js'
import { type Call, callOf } from '../core/request-context.js'
import { callerAddress } from '../server/client-address.js'
import { AdminAccess } from './admin-access.js'
import type { Admin } from './audit-log.js'
import { StrangerTrail } from './stranger-trail.js'

const admins = new WeakMap<Call, Admin>()

/** Lets the operator in and nobody else; where there is no admin key, its routes do not exist. */
@Injectable()
export class AdminGuard implements CanActivate {
  constructor(
    private readonly access: AdminAccess,
    private readonly strangers: StrangerTrail,
    private readonly store: ConfigStore,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<IncomingMessage>()
    const call = callOf(request)
    if (!this.access.exists) throw nothingHere()
    call.answerHeaders['cache-control'] = 'no-store'
    try {
      admins.set(call, { actor: this.access.authorize(request.headers), requestId: call.requestId })
      return true
    } catch (error) {
      await this.noteRefusal(error, request)
      throw error
    }
  }

  private async noteRefusal(error: unknown, request: IncomingMessage): Promise<void> {
    const { requestId, method } = callOf(request)
    const reason = error instanceof GatewayError ? error.kind : 'internal'
    const address = callerAddress(request, this.store.current.server.trustedProxies) ?? ''
    await this.strangers.note({ requestId, reason, method, address })
  }
}

/** In the words that every unknown path gets. */
export const nothingHere = (): GatewayError => new GatewayError('not_found', 'There is nothing at this path.')

/** Who acts; on routes behind `AdminGuard`. */
export const CurrentAdmin = createParamDecorator((_data, context): Admin => {
  const call = callOf(context.switchToHttp().getRequest<IncomingMessage>())
  const admin = admins.get(call)
  if (admin === undefined) throw new GatewayError('internal', 'The request has not been authorized.')
  return admin
})
