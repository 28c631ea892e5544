import { Module } from '@nestjs/common'
import { KeyTable } from './key-table.js'
import { KeyGuard } from './key.guard.js'

/** Who calls: the key table and the guard that reads it. */
@Module({ providers: [KeyTable, KeyGuard], exports: [KeyTable, KeyGuard] })
export class AuthModule {}
