import { Module } from '@nestjs/common'
import { RateLimiterModule } from '../limits/rate-limiter.js'
import { KeyTable, StoredKeys } from './key-table.js'
import { KeyGuard } from './key.guard.js'

/**
 * Who calls: the key table, what it knows of the store, and the guard that reads it and counts the call against the
 * limits of its key.
 */
@Module({
  imports: [RateLimiterModule],
  providers: [StoredKeys, KeyTable, KeyGuard],
  exports: [StoredKeys, KeyTable, KeyGuard, RateLimiterModule],
})
export class AuthModule {}
