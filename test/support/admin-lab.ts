import { execFile } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { newKey } from '../../src/auth/key-table.js'
import type { Exit } from './gateway-process.js'
import { type RawAnswer, sendRaw, TEST_KEY } from './gateway.js'
import { type P1Gateway, startP1Gateway } from './provider-gateways.js'
import { dataDirectory } from './stores.js'

/** A key that every rule about admin keys accepts. */
export const ADMIN_KEY = newKey('sk-gw-admin-')

export interface AdminAnswer extends RawAnswer {
  /** The parsed body. */
  readonly json: Readonly<Record<string, unknown>>
}

/** Speaks to `/admin/v1` of a gateway as the operator does. */
export interface AdminCaller {
  call(method: string, path: string, body?: unknown): Promise<AdminAnswer>
  /** Issues a key; resolves with its id and the key itself. Throws when it is refused. */
  issue(fields?: object): Promise<{ readonly id: string; readonly key: string }>
}

export function adminCaller(url: string, adminKey = ADMIN_KEY): AdminCaller {
  const call = async (method: string, path: string, body?: unknown): Promise<AdminAnswer> => {
    const answer = await sendRaw(url, {
      method,
      path: `/admin/v1${path}`,
      headers: {
        authorization: `Bearer ${adminKey}`,
        'content-type': body === undefined ? undefined : 'application/json',
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    return { ...answer, json: JSON.parse(answer.text || '{}') as Record<string, unknown> }
  }
  return {
    call,
    issue: async (fields = {}) => {
      const { status, json, text } = await call('POST', '/keys', fields)
      if (status !== 201) throw new Error(`not issued: ${text}`)
      return { id: String(json['id']), key: String(json['key']) }
    },
  }
}

const KEYS = fileURLToPath(new URL('../../dist/keys-cli.js', import.meta.url))

/** How it ended, and everything it said. */
export type KeysRun = Pick<Exit, 'output' | 'errors'> & { readonly code: unknown }

/** `npm run keys`, after its build. */
export const keys = (
  directory: string,
  words: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): Promise<KeysRun> =>
  new Promise((resolve) => {
    const env = { PATH: process.env['PATH'] ?? '', GATEWAY_DATA: join(directory, 'data'), ...variables }
    execFile(process.execPath, [KEYS, ...words], { cwd: directory, env }, (error, output, errors) => {
      resolve({ code: error === null ? 0 : error.code, output, errors })
    })
  })

/** A gateway with issued keys, whose store is asked for them all the time. */
export const CONFIGURATION = (adminKey = ADMIN_KEY, more = ''): string =>
  `auth: { adminKey: "${adminKey}", keyRefreshMs: 100 }\n` +
  `channels: [{ id: first, provider: p1, baseUrl: "http://127.0.0.1:1", credentials: x, models: ["gpt-4o"] }]\n${more}`

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
