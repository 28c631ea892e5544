import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { Controller, Injectable, Req, Res, UseGuards } from '@nestjs/common'
import { TEXT } from '../core/json-schema.js'
import { contextOf } from '../core/request-context.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { Database } from '../storage/database.js'
import { adminRoute } from './admin-request.js'
import { AdminGuard, CurrentAdmin } from './admin.guard.js'
import { type Admin, AuditLog } from './audit-log.js'

/** A client that takes nothing for so long is given up on: the log of the store grows meanwhile. */
const SILENCE_MS = 60_000

@Injectable()
export class BackupService {
  constructor(
    private readonly database: Database,
    private readonly auditLog: AuditLog,
  ) {}

  /** Sends the files of the embedded store as they are at the end; recorded first, as everything in them leaves the gateway. */
  send(admin: Admin, response: ServerResponse, onBytes: (bytes: number) => void): Promise<void> {
    return this.auditLog.change(admin, { action: 'store.backup' }, async () => {
      const files = await this.database.snapshot()
      response.writeHead(200, { 'content-type': 'application/x-tar', 'cache-control': 'no-store' })
      response.setTimeout(SILENCE_MS, () => response.destroy())
      const count = async function* (chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
        for await (const chunk of chunks) {
          onBytes(chunk.length)
          yield chunk
        }
      }
      await pipeline(files, count, response)
    })
  }
}

export const BACK_UP_STORE = adminRoute('POST', '/store/backup', {
  operationId: 'backUpStore',
  summary: 'The files of the embedded store, for npm run store -- backup --url',
  description: 'As they are when the answer ends. One at a time; none where the store is a PostgreSQL of your own.',
  answer: {
    description: 'A tar archive',
    content: { 'application/x-tar': { ...TEXT, format: 'binary', description: 'A tar archive' } },
  },
  errors: ['conflict'],
})

@Controller()
@UseGuards(AdminGuard)
export class BackupController {
  constructor(private readonly backup: BackupService) {}

  @Endpoint(BACK_UP_STORE, [])
  async send(
    @CurrentAdmin() admin: Admin,
    @Req() request: IncomingMessage,
    @Res() response: ServerResponse,
  ): Promise<void> {
    const { log } = contextOf(request)
    await this.backup.send(admin, response, (bytes) => {
      log.bytesOut += bytes
    })
  }
}
