import { Controller, Get, UseGuards } from '@nestjs/common'
import { ApiBearerAuth, ApiExtraModels, ApiHeader, ApiOperation, ApiQuery, ApiResponse, ApiTags } from '@nestjs/swagger'
import type { Call } from '../core/request-context.js'
import { ApiUpgradeErrors } from '../dialects/error-docs.js'
import type { RealtimeOpening } from '../providers/realtime.contract.js'
import { CurrentCall } from '../server/json-request.js'
import { OriginGuard } from '../server/origin.guard.js'
import type { UpgradeAnswer } from '../server/upgrade-answer.js'
import { UpgradeGuard } from '../server/upgrade.guard.js'
import { InputAudioAppendDto } from './input-audio-append.dto.js'
import { RealtimeKeyGuard } from './realtime-key.guard.js'
import { Opening } from './realtime-opening.decorator.js'
import { RealtimeService } from './realtime.service.js'
import { ResponseCreateDto } from './response-create.dto.js'
import { SessionUpdateDto } from './session-update.dto.js'

/** The HTTP phase of a session: an upgrade is judged, dialled and refused like any other request. */
@ApiTags('realtime')
@ApiBearerAuth()
@ApiExtraModels(SessionUpdateDto, InputAudioAppendDto, ResponseCreateDto)
@Controller('v1/realtime')
@UseGuards(UpgradeGuard, OriginGuard, RealtimeKeyGuard)
export class RealtimeController {
  constructor(private readonly realtime: RealtimeService) {}

  @Get()
  @ApiOperation({
    summary: 'Realtime voice conversation: a WebSocket',
    description: 'Browsers, which cannot set headers here, offer the key as subprotocol openai-insecure-api-key.<KEY>.',
  })
  @ApiQuery({ name: 'model', required: true, schema: { type: 'string', minLength: 1, example: 'gpt-realtime' } })
  @ApiHeader({ name: 'Upgrade', required: true, schema: { type: 'string', enum: ['websocket'] } })
  @ApiHeader({ name: 'Sec-WebSocket-Version', required: true, schema: { type: 'string', enum: ['13'] } })
  @ApiHeader({ name: 'Sec-WebSocket-Protocol', schema: { type: 'string' }, example: 'realtime' })
  @ApiResponse({ status: 101, description: 'The upstream has answered, and the socket speaks events from here on' })
  @ApiUpgradeErrors()
  open(@Opening() opening: RealtimeOpening, @CurrentCall() call: Call): Promise<UpgradeAnswer> {
    return this.realtime.open(opening, call)
  }
}
