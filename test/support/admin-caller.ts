import { newKey } from '../../src/auth/issued-key.js'
import { type RawAnswer, sendRaw } from './raw-http.js'

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
  issue(terms?: object): Promise<{ readonly id: string; readonly key: string }>
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
    issue: async (terms = {}) => {
      const { status, json, text } = await call('POST', '/keys', terms)
      if (status !== 201) throw new Error(`not issued: ${text}`)
      return { id: String(json['id']), key: String(json['key']) }
    },
  }
}
