import { Controller, HttpCode, Param, Post } from '@nestjs/common'
import { ApiExcludeController } from '@nestjs/swagger'
import { type Exchange, HttpExchange } from '../server/exchange.decorator.js'
import { assertReadable, readBody } from '../server/read-body.js'
import { UpstreamCallbacksService } from './upstream-callbacks.service.js'

/** A task object is a few kilobytes; more is not from an upstream. */
const BODY_LIMITS = { maximumBytes: 65_536, timeoutMs: 5000 }

/** Where upstreams announce that a task has changed; no key, but a path that nobody else knows. */
@ApiExcludeController()
@Controller('vidgen/callbacks')
export class UpstreamCallbacksController {
  constructor(private readonly callbacks: UpstreamCallbacksService) {}

  @Post(':token')
  @HttpCode(200)
  async receive(@Param('token') token: string, @HttpExchange() { request, response }: Exchange): Promise<object> {
    assertReadable(request, BODY_LIMITS.maximumBytes)
    await readBody(request, response, BODY_LIMITS)
    await this.callbacks.hasten(token)
    return {}
  }
}
