import { KeyTable, StoredKeys } from '../../auth/key-table.js'
import { KyselyKeyRepository } from '../../auth/key.pg.js'
import { ConfigStore } from '../../config/config-store.js'
import type { GatewayConfig } from '../../config/settings.js'
import { DtoCheck } from '../../core/dto.js'
import { createLogging } from '../../observability/logger.js'
import { Readiness } from '../../observability/readiness.js'
import { StoreUnusable } from '../../storage/database.js'
import { createDatabase } from '../../storage/storage.module.js'
import { AuditLog } from '../audit-log.js'
import { KyselyAuditRepository } from '../audit-log.pg.js'
import { IssuedKeyDto, KeyChangeDto, KeyDto, NewKeyDto } from '../keys.dto.js'
import { changeOf, KeysService, keyFieldsOf } from '../keys.service.js'
import { KeyAdminFailure, type KeyChangeFields, type KeyAdmin, type NewKeyFields } from './key-client.js'

/** The actor in the audit log: access to the store needs no admin key. */
const ADMIN = { actor: 'cli', requestId: '-' } as const
const PAGE = 1000

/** Opens the store and manages keys in it; rejects with `KeyAdminFailure` if a gateway has it open. */
export async function openStoreKeyAdmin(config: GatewayConfig, dataDirectory: string): Promise<KeyAdmin> {
  const { logger } = createLogging('silent')
  const database = createDatabase(config.database, dataDirectory, new Readiness(), logger)
  try {
    await database.open()
  } catch (error) {
    await database.onApplicationShutdown()
    throw error instanceof StoreUnusable ? inUse(error) : error
  }
  const stored = new StoredKeys()
  const table = new KeyTable(new ConfigStore(config), stored)
  const trail = new AuditLog(new KyselyAuditRepository(database), table, logger)
  return new StoreKeyAdmin(new KeysService(new KyselyKeyRepository(database), table, stored, trail), () =>
    database.onApplicationShutdown(),
  )
}

/** An embedded store can be open in one process only: with a running gateway, `--url` is required. */
const inUse = (error: StoreUnusable): Error =>
  error.message.includes(' is in use by ')
    ? new KeyAdminFailure(
        `${error.message}\nOr ask the gateway that runs, by its admin key: ` +
          'GATEWAY_ADMIN_KEY=… npm run keys -- <command> --url http://127.0.0.1:8080',
      )
    : error

class StoreKeyAdmin implements KeyAdmin {
  private readonly newKeys = new DtoCheck(NewKeyDto)
  private readonly changes = new DtoCheck(KeyChangeDto)

  constructor(
    private readonly keys: KeysService,
    readonly close: () => Promise<void>,
  ) {}

  async create(body: NewKeyFields): Promise<IssuedKeyDto> {
    const { key, secret } = await this.keys.create(ADMIN, keyFieldsOf(this.newKeys.assert({ ...body })))
    return new IssuedKeyDto(key, Date.now(), secret)
  }

  async list(): Promise<readonly KeyDto[]> {
    const listed: KeyDto[] = []
    for (;;) {
      const { keys, hasMore } = await this.keys.page(ADMIN, PAGE, listed.at(-1)?.id)
      listed.push(...keys.map((key) => new KeyDto(key, Date.now())))
      if (!hasMore) return listed
    }
  }

  async show(id: string): Promise<KeyDto> {
    return new KeyDto(await this.keys.show(ADMIN, id), Date.now())
  }

  async change(id: string, body: KeyChangeFields): Promise<KeyDto> {
    return new KeyDto(await this.keys.change(ADMIN, id, changeOf(this.changes.assert({ ...body }))), Date.now())
  }

  async revoke(id: string): Promise<KeyDto> {
    return new KeyDto(await this.keys.revoke(ADMIN, id), Date.now())
  }
}
