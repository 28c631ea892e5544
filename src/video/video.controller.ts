import { applyDecorators, Controller, Headers, Param, Query } from '@nestjs/common'
import { ApiBearerAuth, ApiHeader, ApiOkResponse, ApiOperation, ApiParam, ApiQuery, ApiTags } from '@nestjs/swagger'
import type { ProviderResponse } from '../core/byte-stream.js'
import type { RequestContext } from '../core/request-context.js'
import { ApiTaskCreateErrors, ApiTaskErrors } from '../dialects/error-docs.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { CurrentRequest, type JsonBodyRequest, JsonRequest } from '../server/json-request.js'
import { MultiImageVideoDto, TextVideoDto } from './video.dto.js'
import {
  MULTI_IMAGE_CREATE,
  MULTI_IMAGE_EVENTS,
  MULTI_IMAGE_FIND,
  MULTI_IMAGE_LIST,
  TEXT_CREATE,
  TEXT_EVENTS,
  TEXT_FIND,
  TEXT_LIST,
} from './video.endpoints.js'
import { VideoService } from './video.service.js'

const TIME = { type: 'integer', format: 'int64', description: 'Unix milliseconds' } as const
const STATUS = { type: 'string', enum: ['submitted', 'processing', 'succeed', 'failed'] } as const

/** Specification: Task object. */
const TASK_OBJECT = {
  type: 'object',
  additionalProperties: true,
  properties: {
    task_id: { type: 'string' },
    task_status: STATUS,
    task_status_msg: { type: 'string', description: 'The reason of a failure' },
    task_info: { type: 'object', properties: { external_task_id: { type: 'string' } } },
    task_result: {
      type: 'object',
      properties: {
        videos: {
          type: 'array',
          items: {
            type: 'object',
            properties: {
              id: { type: 'string' },
              url: { type: 'string' },
              watermark_url: { type: 'string' },
              duration: { type: 'string', description: 'Seconds' },
            },
          },
        },
      },
    },
    watermark_info: { type: 'object', properties: { enabled: { type: 'boolean' } } },
    final_unit_deduction: { type: 'string' },
    created_at: TIME,
    updated_at: TIME,
  },
}

const CREATED_TASK = {
  type: 'object',
  additionalProperties: true,
  required: ['task_id', 'task_status', 'created_at', 'updated_at'],
  properties: { task_id: { type: 'string' }, task_status: STATUS, created_at: TIME, updated_at: TIME },
}

const envelopeOf = (data: object): object => ({
  type: 'object',
  required: ['code', 'message', 'request_id', 'data'],
  properties: {
    code: { type: 'integer', description: '0 means success' },
    message: { type: 'string' },
    request_id: { type: 'string' },
    data,
  },
})

const ApiTaskId = (): MethodDecorator =>
  ApiParam({ name: 'id', type: String, description: 'The task_id, or the external_task_id' })

const ApiVideo = (): ClassDecorator => applyDecorators(ApiTags('video'), ApiBearerAuth())

const ApiVideoCreate = (summary: string): MethodDecorator =>
  applyDecorators(
    ApiOperation({ summary }),
    ApiHeader({
      name: 'Idempotency-Key',
      required: false,
      description: 'Repeats under the same key get the first answer again, for 24 hours',
      schema: { type: 'string', minLength: 1, maxLength: 255 },
    }),
    ApiOkResponse({
      schema: envelopeOf(CREATED_TASK),
      headers: {
        'x-idempotent-replay': {
          description: '`true` when the answer was given before under the same Idempotency-Key',
          schema: { type: 'string', enum: ['true'] },
        },
      },
    }),
    ApiTaskCreateErrors(),
  )

const ApiVideoFind = (summary: string): MethodDecorator =>
  applyDecorators(
    ApiOperation({ summary }),
    ApiTaskId(),
    ApiOkResponse({ schema: envelopeOf(TASK_OBJECT) }),
    ApiTaskErrors(),
  )

const ApiVideoList = (summary: string): MethodDecorator =>
  applyDecorators(
    ApiOperation({ summary }),
    ApiQuery({ name: 'pageNum', required: false, schema: { type: 'integer', minimum: 1, maximum: 1000, default: 1 } }),
    ApiQuery({ name: 'pageSize', required: false, schema: { type: 'integer', minimum: 1, maximum: 500, default: 30 } }),
    ApiOkResponse({ schema: envelopeOf({ type: 'array', items: TASK_OBJECT }) }),
    ApiTaskErrors(),
  )

const ApiVideoEvents = (summary: string): MethodDecorator =>
  applyDecorators(
    ApiOperation({ summary }),
    ApiTaskId(),
    ApiOkResponse({
      description: '`event: task` with the task object as data at each change, up to the last one',
      content: { 'text/event-stream': { schema: { type: 'string' } } },
    }),
    ApiTaskErrors(),
  )

const TEXT = 'text2video'

@ApiVideo()
@Controller()
export class TextVideoController {
  constructor(private readonly video: VideoService) {}

  @Endpoint(TEXT_CREATE)
  @ApiVideoCreate('Video from a text')
  create(
    @JsonRequest(TEXT_CREATE, TextVideoDto)
    { body, call }: JsonBodyRequest<TextVideoDto>,
    @Headers('idempotency-key') idempotencyKey: string | undefined,
  ): Promise<ProviderResponse> {
    return this.video.create(TEXT, body, idempotencyKey, call)
  }

  @Endpoint(TEXT_LIST)
  @ApiVideoList('Your text-to-video tasks, newest first')
  list(@Query() query: Record<string, unknown>, @CurrentRequest() call: RequestContext): Promise<ProviderResponse> {
    return this.video.list(TEXT, query, call)
  }

  @Endpoint(TEXT_FIND)
  @ApiVideoFind('One text-to-video task')
  find(@Param('id') id: string, @CurrentRequest() call: RequestContext): Promise<ProviderResponse> {
    return this.video.find(TEXT, id, call)
  }

  @Endpoint(TEXT_EVENTS)
  @ApiVideoEvents('The changes of one text-to-video task as they happen')
  events(@Param('id') id: string, @CurrentRequest() call: RequestContext): Promise<ProviderResponse> {
    return this.video.events(TEXT, id, call)
  }
}

const MULTI_IMAGE = 'multi-image2video'

@ApiVideo()
@Controller()
export class MultiImageVideoController {
  constructor(private readonly video: VideoService) {}

  @Endpoint(MULTI_IMAGE_CREATE)
  @ApiVideoCreate('Video from several reference images')
  create(
    @JsonRequest(MULTI_IMAGE_CREATE, MultiImageVideoDto, ['image_list'])
    { body, call }: JsonBodyRequest<MultiImageVideoDto>,
    @Headers('idempotency-key') idempotencyKey: string | undefined,
  ): Promise<ProviderResponse> {
    return this.video.create(MULTI_IMAGE, body, idempotencyKey, call)
  }

  @Endpoint(MULTI_IMAGE_LIST)
  @ApiVideoList('Your multi-image tasks, newest first')
  list(@Query() query: Record<string, unknown>, @CurrentRequest() call: RequestContext): Promise<ProviderResponse> {
    return this.video.list(MULTI_IMAGE, query, call)
  }

  @Endpoint(MULTI_IMAGE_FIND)
  @ApiVideoFind('One multi-image task')
  find(@Param('id') id: string, @CurrentRequest() call: RequestContext): Promise<ProviderResponse> {
    return this.video.find(MULTI_IMAGE, id, call)
  }

  @Endpoint(MULTI_IMAGE_EVENTS)
  @ApiVideoEvents('The changes of one multi-image task as they happen')
  events(@Param('id') id: string, @CurrentRequest() call: RequestContext): Promise<ProviderResponse> {
    return this.video.events(MULTI_IMAGE, id, call)
  }
}
