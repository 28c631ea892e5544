import { Controller, Get, HttpCode, Param, Post, UseGuards } from '@nestjs/common'
import {
  ApiBearerAuth,
  ApiExtraModels,
  ApiOkResponse,
  ApiOperation,
  ApiParam,
  ApiTags,
  getSchemaPath,
} from '@nestjs/swagger'
import { KeyGuard } from '../auth/key.guard.js'
import type { Call } from '../core/request-context.js'
import type { UpstreamAnswer } from '../core/upstream-answer.js'
import { ApiTaskErrors } from '../dialects/error-docs.js'
import { taskAnswer } from '../dialects/task-answer.js'
import { CurrentCall } from '../server/json-request.js'
import { CallbackDeliveryDto, RedeliveryDto } from './callbacks.dto.js'
import { CallbacksService } from './callbacks.service.js'

const envelopeOf = (data: object): object => ({
  type: 'object',
  required: ['code', 'message', 'request_id', 'data'],
  properties: {
    code: { type: 'integer', enum: [0] },
    message: { type: 'string' },
    request_id: { type: 'string' },
    data,
  },
})
const DELIVERIES = envelopeOf({ type: 'array', items: { $ref: getSchemaPath(CallbackDeliveryDto) } })
const REDELIVERY = envelopeOf({ $ref: getSchemaPath(RedeliveryDto) })

@ApiTags('callbacks')
@ApiBearerAuth()
@ApiExtraModels(CallbackDeliveryDto, RedeliveryDto)
@Controller('vidgen/v1')
@UseGuards(KeyGuard)
export class CallbacksController {
  constructor(private readonly callbacks: CallbacksService) {}

  @Get('videos/multi-image2video/:id/callbacks')
  @ApiOperation({ summary: 'The events sent, or to be sent, about one multi-image task' })
  @ApiParam({ name: 'id', type: String, description: 'Task id or external task id' })
  @ApiOkResponse({ schema: DELIVERIES })
  @ApiTaskErrors()
  async ofMultiImageTask(@Param('id') id: string, @CurrentCall() call: Call): Promise<UpstreamAnswer> {
    return taskAnswer(call, JSON.stringify(await this.callbacks.ofTask('multi-image2video', id, call)))
  }

  @Get('videos/text2video/:id/callbacks')
  @ApiOperation({ summary: 'The events sent, or to be sent, about one text task' })
  @ApiParam({ name: 'id', type: String, description: 'Task id or external task id' })
  @ApiOkResponse({ schema: DELIVERIES })
  @ApiTaskErrors()
  async ofTextTask(@Param('id') id: string, @CurrentCall() call: Call): Promise<UpstreamAnswer> {
    return taskAnswer(call, JSON.stringify(await this.callbacks.ofTask('text2video', id, call)))
  }

  @Post('callbacks/:webhookId/redeliver')
  @HttpCode(200)
  @ApiOperation({ summary: 'Send one event again, on a schedule begun anew' })
  @ApiParam({ name: 'webhookId', type: String })
  @ApiOkResponse({ schema: REDELIVERY })
  @ApiTaskErrors()
  async redeliver(@Param('webhookId') webhookId: string, @CurrentCall() call: Call): Promise<UpstreamAnswer> {
    return taskAnswer(call, JSON.stringify(await this.callbacks.redeliver(webhookId, call)))
  }
}
