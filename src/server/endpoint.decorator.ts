import {
  applyDecorators,
  type CanActivate,
  HttpCode,
  RequestMapping,
  RequestMethod,
  type Type,
  UseGuards,
} from '@nestjs/common'
import { KeyGuard } from '../auth/key.guard.js'
import type { RouteSpec } from '../core/endpoint.js'

/**
 * Routes an endpoint to a controller's method, behind the key guard where its callers need a key, or behind guards of its
 * own. Nothing but the specification says which path that is.
 */
export function Endpoint(
  { method, path, keyHeaders, documentation }: RouteSpec,
  guards: readonly Type<CanActivate>[] = keyHeaders.length === 0 ? [] : [KeyGuard],
): MethodDecorator {
  const mapping = RequestMapping({ path, method: RequestMethod[method] })
  const { status = 200 } = documentation === 'none' ? {} : documentation.answer
  // Nest would answer each POST with 201. A 101 is written with the upgrade: until then the response must not look like one.
  const code = HttpCode(status === 101 ? 200 : status)
  return applyDecorators(mapping, code, ...(guards.length === 0 ? [] : [UseGuards(...guards)]))
}
