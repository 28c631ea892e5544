import { Controller, Get, UseGuards } from '@nestjs/common'
import { ApiBearerAuth, ApiExtraModels, ApiHeader, ApiOperation, ApiQuery, ApiResponse, ApiTags } from '@nestjs/swagger'
import { ApiUpgradeErrors } from '../common/errors/api-errors.decorator.js'
import type { Call } from '../common/http/call.js'
import { CurrentCall } from '../common/http/json-request.decorator.js'
import type { UpgradeAnswer } from '../common/http/upgrade-answer.js'
import { OriginGuard } from '../common/websocket/origin.guard.js'
import { UpgradeGuard } from '../common/websocket/upgrade.guard.js'
import type { RealtimeOpening } from '../providers/contracts/realtime.contract.js'
import { InputAudioAppendDto } from './dto/input-audio-append.dto.js'
import { ResponseCreateDto } from './dto/response-create.dto.js'
import { SessionUpdateDto } from './dto/session-update.dto.js'
import { RealtimeKeyGuard } from './realtime-key.guard.js'
import { Opening } from './realtime-opening.decorator.js'
import { RealtimeService } from './realtime.service.js'

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
