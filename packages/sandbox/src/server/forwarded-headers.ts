import type { RecordedRequest } from './recorded-request.js'

/** Headers that belong between a caller and a relay and must not reach an upstream. */
const FORBIDDEN = [/^x-stainless-/, /^x-forwarded-/, /^(cookie|forwarded|via|x-real-ip|origin|referer)$/, /^proxy-/]

/** Headers that may carry a key. */
const CREDENTIALS = ['authorization', 'x-api-key', 'mj-api-secret'] as const

/**
 * Notes every header a relay should have kept to itself. `credential` names the only header that may carry a key
 * upstream.
 */
export function recordHeaderViolations(request: RecordedRequest, credential: (typeof CREDENTIALS)[number]): void {
  for (const name of Object.keys(request.headers)) {
    if (FORBIDDEN.some((pattern) => pattern.test(name))) request.violations.push(`forwarded header: ${name}`)
  }
  for (const other of CREDENTIALS) {
    if (other !== credential && request.headers[other] !== undefined) {
      request.violations.push(`forwarded header: ${other}`)
    }
  }
  const names = request.rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase())
  if (names.filter((name) => name === credential).length > 1) request.violations.push(`repeated header: ${credential}`)
}
