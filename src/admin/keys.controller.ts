import { Controller, Delete, Get, Param, Patch, Post, Query, UseGuards } from '@nestjs/common'
import { ApiCreatedResponse, ApiExtraModels, ApiOkResponse, ApiOperation, ApiParam, ApiQuery } from '@nestjs/swagger'
import type { Query as QueryMap } from '../core/dto.js'
import { AdminBody, ApiAdmin, ApiAdminErrors, readQuery, wholeNumber } from './admin-request.js'
import { AdminGuard, CurrentAdmin } from './admin.guard.js'
import type { Admin } from './audit-log.js'
import { IssuedKeyDto, KeyChangeDto, KeyDto, KeyListDto, NewKeyDto } from './keys.dto.js'
import { changeOf, KeysService, keyFieldsOf } from './keys.service.js'

const DEFAULT_PAGE = 100
const LARGEST_PAGE = 1000

@ApiAdmin()
@ApiExtraModels(KeyDto)
@Controller('admin/v1/keys')
@UseGuards(AdminGuard)
export class KeysController {
  constructor(private readonly keys: KeysService) {}

  @Post()
  @ApiOperation({ summary: 'Issue a key; the answer is the only one that ever holds it' })
  @ApiCreatedResponse({ type: IssuedKeyDto })
  @ApiAdminErrors()
  async create(@AdminBody(NewKeyDto) body: NewKeyDto, @CurrentAdmin() admin: Admin): Promise<IssuedKeyDto> {
    const { key, secret } = await this.keys.create(admin, keyFieldsOf(body))
    return new IssuedKeyDto(key, Date.now(), secret)
  }

  @Get()
  @ApiOperation({ summary: 'The keys of the store, in the order of their ids' })
  @ApiQuery({ name: 'limit', required: false, type: Number, description: '1 to 1000; 100 without it' })
  @ApiQuery({ name: 'after', required: false, type: String, description: 'Only ids behind this one' })
  @ApiOkResponse({ type: KeyListDto })
  @ApiAdminErrors()
  async list(@Query() query: QueryMap, @CurrentAdmin() admin: Admin): Promise<KeyListDto> {
    const { limit, after } = readQuery(query, ['limit', 'after'])
    const size = wholeNumber('limit', limit, [1, LARGEST_PAGE]) ?? DEFAULT_PAGE
    const { keys, hasMore } = await this.keys.page(admin, size, after)
    const nowMs = Date.now()
    return new KeyListDto(
      keys.map((key) => new KeyDto(key, nowMs)),
      hasMore,
    )
  }

  @Get(':id')
  @ApiOperation({ summary: 'One key' })
  @ApiParam({ name: 'id', type: String })
  @ApiOkResponse({ type: KeyDto })
  @ApiAdminErrors()
  async show(@Param('id') id: string, @CurrentAdmin() admin: Admin): Promise<KeyDto> {
    return new KeyDto(await this.keys.show(admin, id), Date.now())
  }

  @Patch(':id')
  @ApiOperation({ summary: 'Change what a key may do; null takes away, what is left out stays' })
  @ApiParam({ name: 'id', type: String })
  @ApiOkResponse({ type: KeyDto })
  @ApiAdminErrors()
  async change(
    @Param('id') id: string,
    @AdminBody(KeyChangeDto) body: KeyChangeDto,
    @CurrentAdmin() admin: Admin,
  ): Promise<KeyDto> {
    return new KeyDto(await this.keys.change(admin, id, changeOf(body)), Date.now())
  }

  @Delete(':id')
  @ApiOperation({ summary: 'Revoke a key for good' })
  @ApiParam({ name: 'id', type: String })
  @ApiOkResponse({ type: KeyDto })
  @ApiAdminErrors()
  async revoke(@Param('id') id: string, @CurrentAdmin() admin: Admin): Promise<KeyDto> {
    return new KeyDto(await this.keys.revoke(admin, id), Date.now())
  }
}
