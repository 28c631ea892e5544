import { Controller, Param, Query, UseGuards } from '@nestjs/common'
import { CLOSED, type Query as QueryMap, schemaOf } from '../core/dto.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import {
  AdminBody,
  adminRoute,
  LIMIT_PARAMETER,
  PAGE,
  pathParameter,
  readQuery,
  textParameter,
  wholeNumber,
} from './admin-request.js'
import { AdminGuard, CurrentAdmin } from './admin.guard.js'
import type { Admin } from './audit-log.js'
import { IssuedKeyDto, KEY, KeyChangeDto, KeyDto, KeyListDto, NewKeyDto } from './keys.dto.js'
import { changeOf, KeysService, keyFieldsOf } from './keys.service.js'

const NEW_KEY = schemaOf(NewKeyDto, 'NewKey', 'A key to be issued; null means the same as nothing', CLOSED)
const KEY_CHANGE = schemaOf(KeyChangeDto, 'KeyChange', 'What changes; null takes away, what is left out stays', CLOSED)
const ID = pathParameter('id', 'The id of the key')
const KEY_ANSWER = { description: 'The key', content: { 'application/json': KEY } }

export const CREATE_KEY = adminRoute('POST', '/keys', {
  operationId: 'createKey',
  summary: 'Issue a key; the answer is the only one that ever holds it',
  description: 'It holds at once in this process, and in all others within seconds.',
  body: { 'application/json': NEW_KEY },
  answer: {
    status: 201,
    description: 'The key, with its secret',
    content: { 'application/json': schemaOf(IssuedKeyDto, 'IssuedKey', 'A key with its secret') },
  },
  errors: ['conflict'],
})

export const LIST_KEYS = adminRoute('GET', '/keys', {
  operationId: 'listKeys',
  summary: 'The keys of the store, in the order of their ids',
  description: 'Page by page. Keys of the configuration file are not among them.',
  parameters: [LIMIT_PARAMETER, textParameter('after', 'Only ids behind this one')],
  answer: {
    description: 'A page of keys',
    content: { 'application/json': schemaOf(KeyListDto, 'KeyList', 'A page of keys') },
  },
})

export const SHOW_KEY = adminRoute('GET', '/keys/:id', {
  operationId: 'getKey',
  summary: 'One key',
  description: 'Neither the key nor its hash is shown.',
  parameters: [ID],
  answer: KEY_ANSWER,
})

export const CHANGE_KEY = adminRoute('PATCH', '/keys/:id', {
  operationId: 'changeKey',
  summary: 'Change what a key may do; null takes away, what is left out stays',
  description: 'A revoked key stays as it is.',
  parameters: [ID],
  body: { 'application/json': KEY_CHANGE },
  answer: KEY_ANSWER,
  errors: ['conflict'],
})

export const REVOKE_KEY = adminRoute('DELETE', '/keys/:id', {
  operationId: 'revokeKey',
  summary: 'Revoke a key for good',
  description: 'Its id is never issued again.',
  parameters: [ID],
  answer: KEY_ANSWER,
})

@Controller()
@UseGuards(AdminGuard)
export class KeysController {
  constructor(private readonly keys: KeysService) {}

  @Endpoint(CREATE_KEY, [])
  async create(@AdminBody(NewKeyDto) body: NewKeyDto, @CurrentAdmin() admin: Admin): Promise<IssuedKeyDto> {
    const { key, secret } = await this.keys.create(admin, keyFieldsOf(body))
    return new IssuedKeyDto(key, Date.now(), secret)
  }

  @Endpoint(LIST_KEYS, [])
  async list(@Query() query: QueryMap, @CurrentAdmin() admin: Admin): Promise<KeyListDto> {
    const { limit, after } = readQuery(query, ['limit', 'after'])
    const size = wholeNumber('limit', limit, PAGE.range) ?? PAGE.fallback
    const { keys, hasMore } = await this.keys.page(admin, size, after)
    const nowMs = Date.now()
    return new KeyListDto(
      keys.map((key) => new KeyDto(key, nowMs)),
      hasMore,
    )
  }

  @Endpoint(SHOW_KEY, [])
  async show(@Param('id') id: string, @CurrentAdmin() admin: Admin): Promise<KeyDto> {
    return new KeyDto(await this.keys.show(admin, id), Date.now())
  }

  @Endpoint(CHANGE_KEY, [])
  async change(
    @Param('id') id: string,
    @AdminBody(KeyChangeDto) body: KeyChangeDto,
    @CurrentAdmin() admin: Admin,
  ): Promise<KeyDto> {
    return new KeyDto(await this.keys.change(admin, id, changeOf(body)), Date.now())
  }

  @Endpoint(REVOKE_KEY, [])
  async revoke(@Param('id') id: string, @CurrentAdmin() admin: Admin): Promise<KeyDto> {
    return new KeyDto(await this.keys.revoke(admin, id), Date.now())
  }
}
