import { KyselyAdminAuditRepository } from '../../src/common/admin/kysely-admin-audit.repository.js'
import { KyselyKeyRepository } from '../../src/keys/kysely-key.repository.js'
import type { KeyRepositories } from '../contracts/key-repository.contract.js'
import type { TestStore } from './stores.js'

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
