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
  // Nest would answer each POST with 201.
  const status = HttpCode((documentation !== 'none' && documentation.answer.status) || 200)
  return applyDecorators(mapping, status, ...(guards.length === 0 ? [] : [UseGuards(...guards)]))
}
