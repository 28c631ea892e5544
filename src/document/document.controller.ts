import { Controller, HttpCode, Post, UseGuards } from '@nestjs/common'
import { KeyGuard } from '../auth/key.guard.js'
import type { Call } from '../core/request-context.js'
import type { UpstreamAnswer } from '../core/upstream-answer.js'
import { CurrentCall } from '../server/json-request.js'
import { ApiDocument, ApiDocumentParse } from './document-operations.decorator.js'
import { ParseRequest } from './document-request.decorator.js'
import type { DocumentRequest } from './document-request.js'
import { DocumentService } from './document.service.js'

@ApiDocument()
@Controller('v1/document')
@UseGuards(KeyGuard)
export class DocumentController {
  constructor(private readonly documents: DocumentService) {}

  @Post('parse')
  @HttpCode(200)
  @ApiDocumentParse('Any page or file to Markdown')
  parse(@ParseRequest() request: DocumentRequest, @CurrentCall() call: Call): Promise<UpstreamAnswer> {
    return this.documents.parse(request, call)
  }
}
