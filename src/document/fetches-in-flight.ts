import { Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { GatewayError } from '../core/gateway-error.js'

/** A fetch takes a second or two. */
const RETRY_AFTER_SECONDS = 2

/** Documents that are on their way here, from the web or from an upstream that reads them: so many at once and no more. */
@Injectable()
export class FetchesInFlight {
  private running = 0

  constructor(private readonly store: ConfigStore) {}

  /** Rejects with `overloaded` beyond `documents.fetchesInFlight`, otherwise as the work does. */
  async within<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.running >= this.store.current.documents.fetchesInFlight) throw tooManyFetches()
    this.running++
    try {
      return await work()
    } finally {
      this.running--
    }
  }
}

const tooManyFetches = (): GatewayError =>
  new GatewayError('overloaded', 'Too many documents are being fetched at the moment.', {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  })
