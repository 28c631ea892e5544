import { Module } from '@nestjs/common'
import { AdminAccessModule } from '../common/admin/admin-access.module.js'
import { AuthModule } from '../common/auth/auth.module.js'
import { DatabaseModule } from '../common/database/database.module.js'
import { KeyRefresher } from './key-refresher.js'
import { KeyRepository } from './key.repository.js'
import { KeysController } from './keys.controller.js'
import { KeysService } from './keys.service.js'
import { KyselyKeyRepository } from './kysely-key.repository.js'

/** Keys that the operator issues while the gateway runs. */
@Module({
  imports: [AdminAccessModule, AuthModule, DatabaseModule],
  controllers: [KeysController],
  providers: [KeyRefresher, KeysService, { provide: KeyRepository, useClass: KyselyKeyRepository }],
})
export class KeysModule {}
