import type { GatewayConfig } from '../config/settings.js'

/** Whether the operator wants usage stored: by saying so, or by naming a database or a key for the reports. */
export const storesUsage = ({ usage, database, auth }: Pick<GatewayConfig, 'usage' | 'database' | 'auth'>): boolean =>
  usage.store ?? (database.url !== undefined || auth.adminKey !== undefined)
