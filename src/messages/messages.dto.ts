import { createParamDecorator } from '@nestjs/common'
import type { Request } from 'express'
import { AlsoReads, Field } from '../core/dto.js'
import {
  anyOf,
  flag,
  integer,
  list,
  named,
  optional,
  readable,
  record,
  required,
  text,
} from '../core/validation-rules.js'
import type { MessagesFields } from '../dialects/anthropic-messages.js'
import { ESTIMATED_FIELDS } from '../limits/estimate-usage.js'

/** The headers of the messages dialect that travel on, and the query with which its clients ask for beta features. */
export interface MessagesHeaders {
  readonly version?: string
  readonly beta?: string
  readonly userProfileId?: string
  readonly betaQuery: boolean
}

export const MessagesDialect = createParamDecorator((_data, context): MessagesHeaders => {
  const { headers, url } = context.switchToHttp().getRequest<Request>()
  const version = headers['anthropic-version']
  const beta = headers['anthropic-beta']
  const userProfileId = headers['anthropic-user-profile-id']
  return {
    ...(version === undefined ? {} : { version: String(version) }),
    ...(beta === undefined ? {} : { beta: String(beta) }),
    ...(userProfileId === undefined ? {} : { userProfileId: String(userProfileId) }),
    betaQuery: /[?&]beta=true(?:&|$)/.test(url),
  }
})

const nonBlank = text({ allowBlank: false })

/** The source of an image or a document is read to estimate what it costs. */
const block = named(
  'MessageBlock',
  'A part of a message',
  record({ type: required(text()), source: readable('type', 'url', 'data') }),
)

const message = named(
  'InputMessage',
  'One turn of the conversation',
  record({
    role: required(nonBlank),
    content: required(anyOf('a string or an array of blocks', text(), list(block))),
  }),
)

const MODEL = { description: 'Model identifier', example: 'claude-sonnet-4-5' }
const messages = required(list(message, { minimumItems: 1 }))
const MESSAGES = { description: 'The conversation so far' }

const thinking = optional(
  named(
    'Thinking',
    'How the model may think before it answers',
    record({ type: required(nonBlank), budget_tokens: optional(integer()) }),
  ),
)

export interface Thinking {
  readonly type: string
  readonly budget_tokens?: number | null
}

/** `POST /v1/messages/count_tokens`: the messages request without what only an answer needs. */
export class CountTokensRequestDto implements MessagesFields {
  @Field(required(nonBlank), MODEL)
  readonly model!: string

  @Field(messages, MESSAGES)
  readonly messages!: readonly unknown[]

  @Field(thinking, {})
  readonly thinking?: Thinking | null
}

/** The specification's messages-style chat; everything it does not list travels on. */
@AlsoReads(...ESTIMATED_FIELDS)
export class MessagesRequestDto implements MessagesFields {
  @Field(required(nonBlank), MODEL)
  readonly model!: string

  @Field(required(integer({ minimum: 0 })), {
    description: "The longest answer; 0 fills the upstream's prompt cache and generates nothing",
  })
  readonly max_tokens!: number

  @Field(messages, MESSAGES)
  readonly messages!: readonly unknown[]

  @Field(thinking, {})
  readonly thinking?: Thinking | null

  @Field(optional(flag), { default: false, description: 'Events instead of one answer' })
  readonly stream?: boolean | null
}
