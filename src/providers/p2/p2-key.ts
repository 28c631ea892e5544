import { GatewayError } from '../../core/gateway-error.js'

/** The two parts of a P2 key (specification: Authentication). */
export interface P2Key {
  readonly appId: string
  readonly accessToken: string
}

const P2_KEY = /^([\x21-\x7b\x7d\x7e]+)\|([\x21-\x7b\x7d\x7e]+)$/

/** Parses `<APP_ID>|<ACCESS_TOKEN>`: exactly two non-empty printable parts, otherwise `key_malformed` (401). */
export function parseP2Key(key: string): P2Key {
  const [, appId, accessToken] = P2_KEY.exec(key) ?? []
  if (appId === undefined || accessToken === undefined) {
    throw new GatewayError('key_malformed', 'The API key for this model must have the form <APP_ID>|<ACCESS_TOKEN>.')
  }
  return { appId, accessToken }
}
