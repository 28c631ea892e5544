import { All, Controller, Req, UseGuards } from '@nestjs/common'
import type { Request } from 'express'
import { GatewayError, UnknownPath } from '../core/errors.js'
import { contextOf } from '../core/request-context.js'
import { methodsOf } from '../observability/routes.js'
import { AdminGuard } from './admin.guard.js'

/** All other paths below `/admin`: only the operator learns which routes and methods exist. */
@Controller('admin')
@UseGuards(AdminGuard)
export class UnknownRoutesController {
  @All('*path')
  refuse(@Req() request: Request): never {
    const { method, path } = contextOf(request)
    const allow = methodsOf(request.app, path)
    if (allow.length === 0) throw new UnknownPath()
    throw new GatewayError('method_not_allowed', `The method ${method} is not allowed at this path.`, { allow })
  }
}
