import { createParamDecorator } from '@nestjs/common'
import type { Request } from 'express'
import { AlsoReads, Field } from '../core/dto.js'
import { anyOf, flag, integer, list, optional, readable, record, required, text } from '../core/validation-rules.js'
import { ESTIMATED_FIELDS } from '../limits/estimate-usage.js'
import type { MessagesFields } from '../providers/contract.js'

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

/** The source of an image or a document is read to estimate what it costs. */
const block = record({ type: required(text()), source: readable('type', 'url', 'data') })

const message = record({
  role: required(text({ allowBlank: false })),
  content: required(anyOf('a string or an array of blocks', text(), list(block))),
})

const messagesDocumentation = {
  type: 'array',
  minItems: 1,
  items: {
    type: 'object',
    required: ['role', 'content'],
    additionalProperties: true,
    properties: { role: { type: 'string' }, content: {} },
  },
} as const

const thinkingDocumentation = {
  type: 'object',
  additionalProperties: true,
  properties: { type: { type: 'string', example: 'enabled' }, budget_tokens: { type: 'integer', minimum: 1024 } },
} as const

const thinkingRule = optional(
  record({ type: required(text({ allowBlank: false })), budget_tokens: optional(integer()) }),
)

export interface Thinking {
  readonly type: string
  readonly budget_tokens?: number | null
}

/** `POST /v1/messages/count_tokens`: the messages request without what only an answer needs. */
export class CountTokensRequestDto implements MessagesFields {
  @Field(required(text({ allowBlank: false })), { type: 'string', example: 'claude-sonnet-4-5' })
  readonly model!: string

  @Field(required(list(message, { minimumItems: 1 })), messagesDocumentation)
  readonly messages!: readonly unknown[]

  @Field(thinkingRule, thinkingDocumentation)
  readonly thinking?: Thinking | null
}

/** The specification's messages-style chat; everything it does not list travels on. */
@AlsoReads(...ESTIMATED_FIELDS)
export class MessagesRequestDto implements MessagesFields {
  @Field(required(text({ allowBlank: false })), { type: 'string', example: 'claude-sonnet-4-5' })
  readonly model!: string

  /** 0 fills the upstream's prompt cache and generates nothing. */
  @Field(required(integer({ minimum: 0 })), { type: 'integer', minimum: 0 })
  readonly max_tokens!: number

  @Field(required(list(message, { minimumItems: 1 })), messagesDocumentation)
  readonly messages!: readonly unknown[]

  @Field(thinkingRule, thinkingDocumentation)
  readonly thinking?: Thinking | null

  @Field(optional(flag), { type: 'boolean', default: false })
  readonly stream?: boolean | null
}
