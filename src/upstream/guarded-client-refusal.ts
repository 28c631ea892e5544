import { GatewayError } from '../core/gateway-error.js'
import { hasCode } from '../core/system-error.js'
import { AddressRefused } from './ssrf-guard.js'

/** Runs a piece of work; a refused address comes out as the failure of whoever gave the URL. */
export async function explained<Result>(
  callersField: string | undefined,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    const refusal = refusalIn(error)
    throw refusal === undefined ? error : notAllowed(refusal, callersField)
  }
}

/** Why the guard refused, wherever in the failure that stands; undefined when it was not the guard. */
export function refusalIn(error: unknown): AddressRefused | undefined {
  if (error instanceof AddressRefused) return error
  const cause = error instanceof GatewayError ? error.details.cause : undefined
  return cause instanceof AddressRefused ? cause : undefined
}

const notAllowed = (cause: AddressRefused, callersField: string | undefined): GatewayError =>
  callersField === undefined
    ? new GatewayError('upstream_failed', 'The upstream answered with a URL that may not be fetched.', {
        cause,
        attempt: { phase: 'answered', channelFault: true },
      })
    : new GatewayError(
        'invalid_request',
        `Invalid '${callersField}': it must lead to a public address by http or https.`,
        {
          cause,
          code: 'url_not_allowed',
          param: callersField,
        },
      )

/**
 * Waits for the verdict on a host's addresses, `limitMs` at most; rejects with an `AddressRefused` alone: whoever is
 * called later is judged again then.
 */
export async function refusalWithin(limitMs: number, resolution: Promise<unknown>): Promise<void> {
  try {
    await verdictWithin(limitMs, resolution, '')
  } catch (error) {
    if (error instanceof AddressRefused) throw error
  }
}

/**
 * The same where nobody judges again: without a verdict it rejects, too, with `upstream_timeout` or `upstream_failed`. A
 * host that does not exist passes: whatever else knows that name is the business of whoever is asked with it.
 */
export async function verdictWithin(
  limitMs: number,
  resolution: Promise<unknown>,
  callersField: string,
): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new GatewayError('upstream_timeout', `The host of '${callersField}' could not be looked up in time.`))
    }, limitMs)
  })
  const judged = resolution.catch((error: unknown) => {
    if (error instanceof AddressRefused) throw error
    if (!isUnknownHost(error)) throw notLookedUp(callersField, error)
  })
  await Promise.race([judged, limit]).finally(() => {
    clearTimeout(timer)
  })
}

/** The answer that there is no such name, or none with an address, as opposed to no answer. */
const isUnknownHost = (error: unknown): boolean => hasCode(error, 'ENOTFOUND') || hasCode(error, 'ENODATA')

const notLookedUp = (callersField: string, cause: unknown): GatewayError =>
  new GatewayError('upstream_failed', `The host of '${callersField}' could not be looked up.`, { cause })
