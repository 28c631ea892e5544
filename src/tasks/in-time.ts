import { GatewayError } from '../core/gateway-error.js'
import { type Call, callerLeft } from '../core/request-context.js'

/**
 * The outcome of work that was told to end in time and with its caller, or a rejection then, should it not: nobody waits
 * for ever for one that hangs.
 */
export async function inTime<Result>(work: Promise<Result>, call: Call, limitMs: number): Promise<Result> {
  let forgetCaller: () => void = () => undefined
  let timer: NodeJS.Timeout | undefined
  const end = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new GatewayError('upstream_timeout', 'The upstream did not answer in time.'))
    }, limitMs)
    forgetCaller = call.departure.onLeave(() => {
      reject(callerLeft())
    })
  })
  try {
    return await Promise.race([work, end])
  } finally {
    clearTimeout(timer)
    forgetCaller()
  }
}
