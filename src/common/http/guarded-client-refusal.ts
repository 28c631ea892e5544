import { GatewayError } from '../errors/gateway-error.js'
import { AddressRefused } from './address-guard.js'

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

/** Waits until a resolution ends, `limitMs` at most; rejects only with an `AddressRefused`. */
export async function refusalWithin(limitMs: number, resolution: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, limitMs)
  })
  const judged = resolution.then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof AddressRefused) throw error
    },
  )
  await Promise.race([judged, limit]).finally(() => {
    clearTimeout(timer)
  })
}
