import { Module } from '@nestjs/common'
import { AuthModule } from '../auth/auth.module.js'
import { KeyRefresher } from '../auth/key-cache.js'
import { KyselyKeyRepository } from '../auth/key.pg.js'
import { KeyRepository } from '../auth/key.repository.js'
import { DatabaseModule } from '../storage/storage.module.js'
import { AdminAccessModule } from './admin-access.module.js'
import { KeysController } from './keys.controller.js'
import { KeysService } from './keys.service.js'

/** Keys that the operator issues while the gateway runs. */
@Module({
  imports: [AdminAccessModule, AuthModule, DatabaseModule],
  controllers: [KeysController],
  providers: [KeyRefresher, KeysService, { provide: KeyRepository, useClass: KyselyKeyRepository }],
})
export class KeysModule {}
