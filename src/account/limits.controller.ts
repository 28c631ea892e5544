import { Controller, Get, UseGuards } from '@nestjs/common'
import { ApiBearerAuth, ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger'
import { KeyGuard } from '../auth/key.guard.js'
import { LIMIT_NAMES } from '../core/limit-names.js'
import type { Call } from '../core/request-context.js'
import { ApiChatErrors } from '../dialects/error-docs.js'
import { CurrentCall } from '../server/json-request.js'
import { type LimitsAnswer, LimitsService } from './limits.service.js'

const COUNT = { type: 'integer', minimum: 0 } as const
const STATE = {
  type: 'object',
  required: ['limit', 'remaining'],
  properties: { limit: { type: 'integer', minimum: 1 }, remaining: COUNT, reset_seconds: COUNT, in_use: COUNT },
}

@ApiTags('limits')
@ApiBearerAuth()
@Controller('v1/limits')
@UseGuards(KeyGuard)
export class LimitsController {
  constructor(private readonly limits: LimitsService) {}

  @Get()
  @ApiOperation({ summary: "The limits of the caller's key, and what is left of them" })
  @ApiOkResponse({
    description: 'Only limits that the key has; asking counts for none of them',
    schema: {
      type: 'object',
      required: ['object', 'scope', 'shared', 'limits'],
      properties: {
        object: { type: 'string', enum: ['limits'] },
        scope: { type: 'string', example: 'key:team-a' },
        shared: { type: 'boolean', description: 'All replicas count together at this moment' },
        limits: { type: 'object', properties: Object.fromEntries(LIMIT_NAMES.map((name) => [name, STATE])) },
      },
    },
  })
  @ApiChatErrors()
  show(@CurrentCall() call: Call): Promise<LimitsAnswer> {
    return this.limits.show(call.caller)
  }
}
