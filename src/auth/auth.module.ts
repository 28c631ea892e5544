import { Module } from '@nestjs/common'
import { LimitGateModule } from '../limits/limit-gate.module.js'
import { KeyTable } from './key-table.js'
import { KeyGuard } from './key.guard.js'
import { StoredKeys } from './stored-keys.js'

/**
 * Who calls: the key table, what it knows of the store, and the guard that reads it and counts the call against the
 * limits of its key.
 */
@Module({
  imports: [LimitGateModule],
  providers: [StoredKeys, KeyTable, KeyGuard],
  exports: [StoredKeys, KeyTable, KeyGuard, LimitGateModule],
})
export class AuthModule {}
