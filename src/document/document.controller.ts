import { applyDecorators, Controller, Injectable, type PipeTransform } from '@nestjs/common'
import {
  ApiBearerAuth,
  ApiExtraModels,
  ApiHeader,
  ApiOkResponse,
  ApiOperation,
  ApiQuery,
  ApiTags,
  getSchemaPath,
} from '@nestjs/swagger'
import type { ProviderResponse } from '../core/byte-stream.js'
import type { RequestContext } from '../core/request-context.js'
import { ApiDocumentErrors } from '../dialects/error-docs.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { CurrentRequest, type Exchange, HttpExchange } from '../server/json-request.js'
import { DocumentRequestReader } from './document-upload.js'
import { BODY_TYPES, DocumentFormDto, type DocumentRequest, DocumentUrlDto } from './document.dto.js'
import { DOCUMENT_PARSE } from './document.endpoint.js'
import { DocumentService } from './document.service.js'

const TEXT = { type: 'string' } as const

/** Specification: Document parse result. */
const METADATA = {
  url: { type: 'string', description: 'After redirects; empty for a file' },
  title: TEXT,
  description: TEXT,
  keywords: TEXT,
  siteName: TEXT,
  favicon: TEXT,
  statusCode: { type: 'integer', description: 'Of the server of the document; 200 for a file' },
  contentType: TEXT,
  cached: { type: 'integer', enum: [0, 1], description: '1 when the document was read before' },
}

const RESULT = {
  type: 'object',
  required: ['code', 'message', 'data'],
  properties: {
    code: { type: 'integer', description: '0 means success' },
    message: TEXT,
    data: {
      type: 'object',
      required: ['metadata', 'html', 'markdown'],
      properties: {
        metadata: { type: 'object', required: Object.keys(METADATA), properties: METADATA },
        html: { type: 'string', description: 'The main content of a page; otherwise empty' },
        markdown: TEXT,
      },
    },
  },
}

const REQUEST_BODY = {
  required: true,
  content: {
    'application/json': { schema: { $ref: getSchemaPath(DocumentUrlDto) } },
    'multipart/form-data': { schema: { $ref: getSchemaPath(DocumentFormDto) } },
    ...Object.fromEntries(BODY_TYPES.map((type) => [type, { schema: { type: 'string', format: 'binary' } }])),
  },
}

const ApiDocument = (): ClassDecorator => applyDecorators(ApiTags('document'), ApiBearerAuth())

const ApiDocumentParse = (summary: string): MethodDecorator =>
  applyDecorators(
    ApiExtraModels(DocumentUrlDto, DocumentFormDto),
    ApiOperation({ summary, requestBody: REQUEST_BODY }),
    ApiQuery({
      name: 'timeout',
      required: false,
      description: 'With a document as the body; seconds, from 1,000 on milliseconds',
      schema: { type: 'number', minimum: 0 },
    }),
    ApiQuery({
      name: 'no_cache',
      required: false,
      description: 'With a document as the body',
      schema: { type: 'boolean', default: false },
    }),
    ApiHeader({
      name: 'Cache-Control',
      required: false,
      description: '`no-cache` means the same as no_cache',
      schema: TEXT,
    }),
    ApiOkResponse({ schema: RESULT }),
    ApiDocumentErrors(),
  )

@Injectable()
class DocumentRequestPipe implements PipeTransform<Exchange, Promise<DocumentRequest>> {
  constructor(private readonly reception: DocumentRequestReader) {}

  async transform({ request, response }: Exchange): Promise<DocumentRequest> {
    return await this.reception.receive(request, response)
  }
}

/** What the caller wants read, in whichever of the three forms it came. */
function ParseRequest(): ParameterDecorator {
  return HttpExchange(DocumentRequestPipe)
}

@ApiDocument()
@Controller()
export class DocumentController {
  constructor(private readonly documents: DocumentService) {}

  @Endpoint(DOCUMENT_PARSE)
  @ApiDocumentParse('Any page or file to Markdown')
  parse(@ParseRequest() request: DocumentRequest, @CurrentRequest() call: RequestContext): Promise<ProviderResponse> {
    return this.documents.parse(request, call)
  }
}
