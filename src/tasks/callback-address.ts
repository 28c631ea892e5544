import { Injectable } from '@nestjs/common'
import { GatewayError } from '../core/gateway-error.js'
import { GuardedClient } from '../upstream/safe-fetch.js'

const FIELD = 'callback_url'
const MAXIMUM_CHARACTERS = 2048

/** A URL's parser drops or encodes them in silence, and a database has no text with a NUL in it. */
const CONTROL_CHARACTER = /\p{Cc}/u

/** A create waits no longer for a name server. */
const RESOLVE_MS = 2000

/** Judges a `callback_url` when a task is created, so that a useless or hostile one is refused before anyone pays. */
@Injectable()
export class CallbackAddress {
  constructor(private readonly guarded: GuardedClient) {}

  /**
   * Rejects with `invalid_request` (param `callback_url`, code `url_not_allowed`) unless the URL is http or https, without
   * user, at most 2,048 characters long and none of them a control character, and leads to public addresses or to what the
   * operator exempts. A name that does not resolve now is let through: each delivery judges the address anew.
   */
  async assertAllowed(url: string): Promise<void> {
    if (url.length > MAXIMUM_CHARACTERS) throw invalid(`it must not be longer than ${MAXIMUM_CHARACTERS} characters`)
    if (CONTROL_CHARACTER.test(url)) throw invalid('it must not hold control characters')
    await this.guarded.assertAllowed(url, FIELD, RESOLVE_MS)
  }
}

const invalid = (what: string): GatewayError =>
  new GatewayError('invalid_request', `Invalid '${FIELD}': ${what}.`, { code: 'url_not_allowed', param: FIELD })
