import { applyDecorators, Controller, Param } from '@nestjs/common'
import { ApiBearerAuth, ApiOkResponse, ApiOperation, ApiParam, ApiResponse, ApiTags } from '@nestjs/swagger'
import type { ProviderResponse } from '../core/byte-stream.js'
import type { RequestContext } from '../core/request-context.js'
import { IMAGE_STATUSES } from '../providers/contract.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { CurrentRequest } from '../server/json-request.js'
import { IMAGE_EVENTS, IMAGE_FETCH, IMAGE_SEED } from './image.endpoints.js'
import { ImageService } from './image.service.js'

const TEXT = { type: 'string' } as const
const TIME = { type: 'integer', format: 'int64', description: 'Unix milliseconds; 0 until known' } as const

const BUTTON = {
  type: 'object',
  additionalProperties: true,
  properties: {
    customId: { type: 'string', description: 'Prefix, operation, index and job, e.g. MJ::JOB::upsample::1::<uuid>' },
    emoji: TEXT,
    label: TEXT,
    type: { type: 'integer' },
    style: { type: 'integer' },
  },
} as const

/** Specification: Image task. */
const FIELDS = {
  id: TEXT,
  action: { type: 'string', example: 'IMAGINE' },
  customId: TEXT,
  botType: TEXT,
  prompt: TEXT,
  promptEn: TEXT,
  description: TEXT,
  state: TEXT,
  submitTime: TIME,
  startTime: TIME,
  finishTime: TIME,
  imageUrl: { type: 'string', description: 'A preview while the task runs' },
  status: { type: 'string', examples: [...IMAGE_STATUSES] },
  progress: { type: 'string', description: 'A percentage, or empty', example: '31%' },
  failReason: TEXT,
  buttons: { type: 'array', items: BUTTON },
  maskBase64: TEXT,
  properties: {
    type: 'object',
    additionalProperties: true,
    properties: {
      finalPrompt: TEXT,
      finalZhPrompt: TEXT,
      seed: { type: 'string', description: 'In answers to image-seed' },
    },
  },
} as const

const IMAGE_TASK = {
  type: 'object',
  additionalProperties: true,
  required: Object.keys(FIELDS),
  properties: FIELDS,
}

const IMAGE_ERROR = {
  type: 'object',
  required: ['code', 'message', 'request_id', 'description'],
  properties: {
    code: { type: 'integer', description: 'Never 0' },
    message: TEXT,
    request_id: TEXT,
    description: { type: 'string', description: 'The same as message' },
  },
}

const ERRORS: Readonly<Record<number, string>> = {
  400: 'The id can be none, or the upstream refuses the question',
  401: 'No API key, or one that is not valid',
  403: 'The caller’s own key has no access at the upstream',
  404: 'No channel knows the task',
  429: 'The upstream is busy; Retry-After says when to come back',
  502: 'The upstream provider failed',
  504: 'The upstream provider did not answer in time',
}

const ApiImageErrors = (): MethodDecorator =>
  applyDecorators(
    ...Object.entries(ERRORS).map(([status, description]) =>
      ApiResponse({ status: Number(status), description, content: { 'application/json': { schema: IMAGE_ERROR } } }),
    ),
  )

const ApiTaskId = (): MethodDecorator =>
  ApiParam({ name: 'id', schema: { type: 'string', pattern: '^[A-Za-z0-9_-]{1,64}$' } })

const ApiImage = (): ClassDecorator => applyDecorators(ApiTags('image'), ApiBearerAuth())

const ApiImageTask = (summary: string): MethodDecorator =>
  applyDecorators(ApiOperation({ summary }), ApiTaskId(), ApiOkResponse({ schema: IMAGE_TASK }), ApiImageErrors())

const ApiImageEvents = (summary: string): MethodDecorator =>
  applyDecorators(
    ApiOperation({ summary }),
    ApiTaskId(),
    ApiOkResponse({
      description: '`event: task` with the task object as data at each change, up to the last one',
      content: { 'text/event-stream': { schema: TEXT } },
    }),
    ApiImageErrors(),
  )

@ApiImage()
@Controller()
export class ImageController {
  constructor(private readonly images: ImageService) {}

  @Endpoint(IMAGE_FETCH)
  @ApiImageTask('One image task')
  fetch(@Param('id') id: string, @CurrentRequest() call: RequestContext): Promise<ProviderResponse> {
    return this.images.fetch(id, call)
  }

  @Endpoint(IMAGE_SEED)
  @ApiImageTask('One image task with the seed of its picture in properties.seed; may take a minute')
  seed(@Param('id') id: string, @CurrentRequest() call: RequestContext): Promise<ProviderResponse> {
    return this.images.seed(id, call)
  }

  @Endpoint(IMAGE_EVENTS)
  @ApiImageEvents('The changes of one image task as they happen')
  events(@Param('id') id: string, @CurrentRequest() call: RequestContext): Promise<ProviderResponse> {
    return this.images.events(id, call)
  }
}
