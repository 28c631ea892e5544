import type { IncomingMessage } from 'node:http'
import { type CanActivate, createParamDecorator, type ExecutionContext, Injectable } from '@nestjs/common'
import { GatewayError } from '../errors/gateway-error.js'
import { type Call, callOf } from '../http/call.js'
import { AdminAccess } from './admin-access.js'
import { type Admin, AdminTrail } from './admin-trail.js'

const NOBODY = '-'

const admins = new WeakMap<Call, Admin>()

/** Lets the operator in and nobody else; where there is no admin key, its routes do not exist. */
@Injectable()
export class AdminGuard implements CanActivate {
  constructor(
    private readonly access: AdminAccess,
    private readonly trail: AdminTrail,
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

  /** Those beyond the limit stand in the log of requests only: the audit log must not be anybody's to fill. */
  private async noteRefusal(error: unknown, request: IncomingMessage): Promise<void> {
    if (error instanceof GatewayError && error.kind === 'rate_limited') return
    const { requestId, method } = callOf(request)
    const reason = error instanceof GatewayError ? error.kind : 'internal'
    const details = { reason, method, address: request.socket.remoteAddress ?? '' }
    await this.trail.note({ actor: NOBODY, requestId }, { action: 'authorize', details }, 'refused')
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
