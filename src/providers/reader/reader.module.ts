import { Injectable, Module } from '@nestjs/common'
import { HttpModule } from '../../upstream/upstream.module.js'
import type { ProviderCapabilities } from '../provider-capabilities.js'
import { ReaderDocumentProvider } from './reader-document.js'

/** Readers of documents, used instead of the gateway's own engine. */
@Injectable()
export class ReaderCapabilities implements ProviderCapabilities {
  constructor(readonly document: ReaderDocumentProvider) {}
}

@Module({
  imports: [HttpModule],
  providers: [ReaderDocumentProvider, ReaderCapabilities],
  exports: [ReaderCapabilities],
})
export class ReaderModule {}
