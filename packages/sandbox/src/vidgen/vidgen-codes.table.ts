/** Every code of the service: the HTTP status it comes with, and its usual words. */
export const VIDGEN_CODES = {
  1000: { status: 401, message: 'Authentication failed' },
  1001: { status: 401, message: 'Authorization is empty' },
  1002: { status: 401, message: 'Authorization is invalid' },
  1003: { status: 401, message: 'Authorization is not yet valid' },
  1004: { status: 401, message: 'Authorization has expired' },
  1100: { status: 429, message: 'Account exception' },
  1101: { status: 429, message: 'Account in arrears' },
  1102: { status: 429, message: 'Resource pack depleted or expired' },
  1103: { status: 403, message: 'No permission for the requested resource' },
  1200: { status: 400, message: 'Invalid request parameters' },
  1201: { status: 400, message: 'Invalid parameter' },
  1202: { status: 404, message: 'The requested method is invalid' },
  1203: { status: 404, message: 'The requested resource does not exist' },
  1300: { status: 400, message: 'The platform strategy was triggered' },
  1301: { status: 400, message: 'The content safety policy was triggered' },
  1302: { status: 429, message: 'The API request is too fast' },
  1303: { status: 429, message: 'parallel task over resource pack limit' },
  1304: { status: 429, message: 'The IP whitelist policy was triggered' },
  5000: { status: 500, message: 'Internal server error' },
  5001: { status: 503, message: 'The server is temporarily unavailable for maintenance' },
  5002: { status: 504, message: 'Internal server timeout' },
} as const satisfies Readonly<Record<number, { readonly status: number; readonly message: string }>>

export type VidgenCode = keyof typeof VIDGEN_CODES

/** The code a word such as `1301` stands for. */
export function vidgenCode(word: string): VidgenCode | undefined {
  return Object.hasOwn(VIDGEN_CODES, word) ? (Number(word) as VidgenCode) : undefined
}
