import { createParamDecorator } from '@nestjs/common'
import type { Request } from 'express'
import { GatewayError } from '../core/gateway-error.js'
import type { RealtimeOpening } from '../providers/realtime.contract.js'

/** The query of an upgrade as a controller receives it: exactly one `model`, the rest in order. */
export const Opening = createParamDecorator((_data, context) =>
  openingOf(context.switchToHttp().getRequest<Request>().url),
)

/** Throws `invalid_request` with `param` `model` unless the query names one model. */
export function openingOf(url: string): RealtimeOpening {
  const entries = [...new URLSearchParams(/\?(.*)$/s.exec(url)?.[1] ?? '')]
  const models = entries.filter(([name]) => name === 'model').map(([, value]) => value)
  const [model] = models
  if (model === undefined) {
    throw wrongModel('missing_required_parameter', "Missing required parameter: 'model' (in the query).")
  }
  if (models.length > 1) throw wrongModel('duplicate_key', "Invalid 'model': it must stand in the query once.")
  if (model.trim() === '') throw wrongModel('empty_string', "Invalid 'model': it must not be empty.")
  return { model, query: entries.filter(([name]) => name !== 'model') }
}

const wrongModel = (code: string, message: string): GatewayError =>
  new GatewayError('invalid_request', message, { param: 'model', code })
