import { KyselyAdminAuditRepository } from '../../src/admin/audit-log.pg.js'
import { KyselyKeyRepository } from '../../src/auth/key.pg.js'
import type { TestStore } from '../support/stores.js'
import type { KeyRepositories } from './key-repository.contract.js'

/** The repositories of keys on a store, in which there are none. */
export async function keyRepositories({ database }: TestStore): Promise<KeyRepositories> {
  await database.run((queries) => queries.deleteFrom('api_key').execute())
  await database.run((queries) => queries.deleteFrom('admin_audit').execute())
  return {
    keys: new KyselyKeyRepository(database),
    audit: new KyselyAdminAuditRepository(database),
    putClockBack: async (durationMs) => {
      await database.run((queries) =>
        queries
          .updateTable('api_key')
          .set(({ eb }) => ({ updated_at_ms: eb('updated_at_ms', '+', durationMs) }))
          .execute(),
      )
    },
  }
}
