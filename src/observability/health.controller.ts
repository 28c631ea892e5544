import { Controller, Get, HttpStatus, Module, Res } from '@nestjs/common'
import { ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger'
import type { Response } from 'express'
import { Readiness } from './readiness.js'

const STATUS_SCHEMA = { type: 'object', properties: { status: { type: 'string' } } }

@ApiTags('health')
@Controller('health')
class HealthController {
  constructor(private readonly readiness: Readiness) {}

  @Get('live')
  @ApiOperation({ summary: '200 while the process lives' })
  @ApiResponse({ status: 200, schema: STATUS_SCHEMA })
  live(): { status: string } {
    return { status: 'live' }
  }

  @Get('ready')
  @ApiOperation({ summary: '200 once the gateway can serve; 503 while it starts, drains or has lost its store' })
  @ApiResponse({ status: 200, schema: STATUS_SCHEMA })
  @ApiResponse({ status: 503, schema: STATUS_SCHEMA })
  ready(@Res({ passthrough: true }) response: Response): { status: string } {
    response.statusCode = this.readiness.isReady ? HttpStatus.OK : HttpStatus.SERVICE_UNAVAILABLE
    return { status: this.readiness.status }
  }
}

/** Liveness and readiness for operators' probes. */
@Module({ controllers: [HealthController] })
export class HealthModule {}
