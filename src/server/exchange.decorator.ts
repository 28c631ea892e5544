import { createParamDecorator } from '@nestjs/common'
import type { Request, Response } from 'express'

/** A request and the response that answers it. */
export interface Exchange {
  readonly request: Request
  readonly response: Response
}

/** Request and response for pipes that read bodies; pipes run after guards, so no body is read for an unknown key. */
export const HttpExchange = createParamDecorator((_data, context): Exchange => {
  const http = context.switchToHttp()
  return { request: http.getRequest<Request>(), response: http.getResponse<Response>() }
})
