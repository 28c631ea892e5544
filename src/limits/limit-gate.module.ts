import { Module } from '@nestjs/common'
import { LimitGate } from './rate-limiter.js'

/** The limits of keys, for the guards that know who calls. */
@Module({ providers: [LimitGate], exports: [LimitGate] })
export class LimitGateModule {}
