import { Controller, Injectable, type PipeTransform } from '@nestjs/common'
import type { ProviderResponse } from '../core/byte-stream.js'
import type { RequestContext } from '../core/request-context.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { CurrentRequest, type Exchange, HttpExchange } from '../server/json-request.js'
import { DocumentRequestReader } from './document-upload.js'
import type { DocumentRequest } from './document.dto.js'
import { DOCUMENT_PARSE } from './document.endpoint.js'
import { DocumentService } from './document.service.js'

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

@Controller()
export class DocumentController {
  constructor(private readonly documents: DocumentService) {}

  @Endpoint(DOCUMENT_PARSE)
  parse(@ParseRequest() request: DocumentRequest, @CurrentRequest() call: RequestContext): Promise<ProviderResponse> {
    return this.documents.parse(request, call)
  }
}
