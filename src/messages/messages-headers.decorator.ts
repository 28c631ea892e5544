import { createParamDecorator } from '@nestjs/common'
import type { Request } from 'express'

/** The headers of the messages dialect that travel on, and the query with which its clients ask for beta features. */
export interface MessagesHeaders {
  readonly version?: string
  readonly beta?: string
  readonly betaQuery: boolean
}

export const MessagesDialect = createParamDecorator((_data, context): MessagesHeaders => {
  const { headers, url } = context.switchToHttp().getRequest<Request>()
  const version = headers['anthropic-version']
  const beta = headers['anthropic-beta']
  return {
    ...(version === undefined ? {} : { version: String(version) }),
    ...(beta === undefined ? {} : { beta: String(beta) }),
    betaQuery: /[?&]beta=true(?:&|$)/.test(url),
  }
})
