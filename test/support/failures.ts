import { GatewayError } from '../../src/core/gateway-error.js'

/** The error this work fails with. Throws when it does not fail, or with an error that is none of the gateway's. */
export async function failureOf(work: Promise<unknown>): Promise<GatewayError> {
  const error: unknown = await work.then(
    () => new Error('it did not fail'),
    (reason: unknown) => reason,
  )
  if (!(error instanceof GatewayError)) throw error
  return error
}
