import { applyDecorators } from '@nestjs/common'
import { ApiBearerAuth, ApiTags } from '@nestjs/swagger'
import { AUDIO_ERROR, responses } from '../dialects/error-docs.js'

const CASES: Readonly<Record<number, string>> = {
  400: 'The request is not valid; param names the field',
  401: 'No admin key, or a wrong one',
  404: 'There is no such thing, or no auth.adminKey in the configuration',
  409: 'The id is taken, or the key is revoked',
  413: 'The body is larger than 65,536 bytes',
  415: 'The body is of the wrong media type',
  422: 'The configuration file has faults; the old configuration stays in force',
  429: 'Too many wrong admin keys; Retry-After says when to come back',
  503: 'The store cannot be reached; nothing was done',
}

/** Routes on the operator's own key. */
export const ApiAdmin = (): ClassDecorator => applyDecorators(ApiTags('admin'), ApiBearerAuth())

/** The failures of the operator's routes in the OpenAPI document. */
export const ApiAdminErrors = (statuses = [400, 401, 404, 409, 413, 415, 429, 503]): MethodDecorator =>
  responses(AUDIO_ERROR, statuses, CASES)
