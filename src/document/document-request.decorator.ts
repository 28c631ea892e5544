import { Injectable, type PipeTransform } from '@nestjs/common'
import { type Exchange, HttpExchange } from '../server/exchange.decorator.js'
import type { DocumentRequest } from './document-request.js'
import { DocumentReception } from './document-upload.js'

@Injectable()
class DocumentRequestPipe implements PipeTransform<Exchange, Promise<DocumentRequest>> {
  constructor(private readonly reception: DocumentReception) {}

  async transform({ request, response }: Exchange): Promise<DocumentRequest> {
    return await this.reception.receive(request, response)
  }
}

/** What the caller wants read, in whichever of the three forms it came. */
export const ParseRequest = (): ParameterDecorator => HttpExchange(DocumentRequestPipe)
