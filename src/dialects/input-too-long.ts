import { GatewayError } from '../core/gateway-error.js'
import { codePoints } from '../core/validation-rules.js'

/** The refusal of a text that is longer than `limit`, such as `4096 characters`. */
export const inputTooLong = (limit: string): GatewayError =>
  new GatewayError('invalid_request', `Invalid 'input': string too long. Expected a string with at most ${limit}.`, {
    param: 'input',
    code: 'string_above_max_length',
  })

/** Characters are code points (design: Speech). Throws `invalid_request` for more of them. */
export function assertInputLength(input: string, maximumCharacters: number): void {
  if (codePoints(input) > maximumCharacters) throw inputTooLong(`${maximumCharacters} characters`)
}
