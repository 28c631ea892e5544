import { rm } from 'node:fs/promises'
import { adminCaller, ADMIN_KEY, type AdminCaller } from './admin-caller.js'
import { TEST_KEY } from './gateway.js'
import { startP1Gateway, type P1Gateway } from './p1-gateway.js'
import { dataDirectory } from './stores.js'

/** The section of a configuration that has an operator and one caller. */
export const ADMIN_SECTION = { auth: { keys: [{ id: 'test', key: TEST_KEY }], adminKey: ADMIN_KEY } }

export const withKey = (key: string | undefined, more: object = {}) => ({
  authorization: key === undefined ? undefined : `Bearer ${key}`,
  ...more,
})

/** A gateway of two channels with a store of its own, and its operator. */
export interface AdminLab extends P1Gateway {
  readonly admin: AdminCaller
  /** The audit log, the newest first. */
  auditTrail(query?: string): Promise<Record<string, unknown>[]>
}

export async function startAdminLab(): Promise<AdminLab> {
  const directory = await dataDirectory()
  const lab = await startP1Gateway({ sections: ADMIN_SECTION, dataDirectory: directory, withSecond: true })
  const admin = adminCaller(lab.gateway.url)
  return {
    ...lab,
    admin,
    auditTrail: async (query = '') =>
      (await admin.call('GET', `/audit${query}`)).json['data'] as Record<string, unknown>[],
    close: async () => {
      await lab.close()
      await rm(directory, { recursive: true })
    },
  }
}
