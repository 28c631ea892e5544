import { Controller, Inject, Injectable, UseGuards } from '@nestjs/common'
import { ConfigStore, reportReload } from '../config/config-store.js'
import { schemaOf, Shown } from '../core/dto.js'
import { GatewayError } from '../core/errors.js'
import { constant, listOf, TEXT } from '../core/json-schema.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { adminRoute } from './admin-request.js'
import { AdminGuard, CurrentAdmin } from './admin.guard.js'
import { type Admin, AuditLog } from './audit-log.js'

class ReloadDto {
  @Shown(constant('config_reload'))
  readonly object = 'config_reload'

  @Shown(listOf(TEXT, 'Settings that changed, but keep their values until a restart'))
  readonly needs_restart: readonly string[]

  constructor(needsRestart: readonly string[]) {
    this.needs_restart = needsRestart
  }
}

const REFUSED_STATUS = 422

/** Reloads the configuration file, as SIGHUP does, for all workers. */
@Injectable()
export class ReloadService {
  constructor(
    private readonly config: ConfigStore,
    private readonly auditLog: AuditLog,
    @Inject(LOGGER) private readonly logger: Pick<Logger, 'info' | 'error'>,
  ) {}

  /** Resolves with the settings that need a restart; rejects with every fault when the old configuration stays. */
  reload(admin: Admin): Promise<readonly string[]> {
    return this.auditLog.change(admin, { action: 'config.reload' }, async () => {
      const outcome = await this.config.reload()
      reportReload(outcome, {
        info: (message) => {
          this.logger.info(message)
        },
        error: (message) => {
          this.logger.error(message)
        },
      })
      if (!outcome.applied) throw refused(outcome.faults)
      return outcome.needsRestart
    })
  }
}

/** The faults are a separate list, as a message is too short for them. They name settings, never values. */
function refused(faults: readonly string[]): GatewayError {
  const message = 'The configuration has not been reloaded, the old one stays in force.'
  const error = { message, type: 'invalid_request_error', param: null, code: 'configuration_refused', faults }
  return new GatewayError('unprocessable', message, {
    code: 'configuration_refused',
    relayed: { status: REFUSED_STATUS, body: JSON.stringify({ error }) },
  })
}

export const RELOAD_CONFIGURATION = adminRoute('POST', '/config/reload', {
  operationId: 'reloadConfiguration',
  summary: 'Read the configuration file anew, for this gateway and all its workers',
  description: 'A file with faults changes nothing; all of them are named in error.faults.',
  answer: {
    description: 'The configuration is in force',
    content: { 'application/json': schemaOf(ReloadDto, 'ConfigurationReload', 'What came of it') },
  },
  errors: ['unprocessable'],
})

@Controller()
@UseGuards(AdminGuard)
export class ReloadController {
  constructor(private readonly configuration: ReloadService) {}

  @Endpoint(RELOAD_CONFIGURATION, [])
  async reload(@CurrentAdmin() admin: Admin): Promise<ReloadDto> {
    return new ReloadDto(await this.configuration.reload(admin))
  }
}
