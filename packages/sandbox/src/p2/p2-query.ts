import { speechDurationMs } from '../audio/speech-plan.js'
import type { Exchange } from '../server/exchange.js'
import { parseJsonObject } from '../server/json-value.js'
import { speak } from './p2-audio.js'
import { P2Rejection, violate } from './p2-codes.js'
import type { P2Context } from './p2-context.js'
import { readWish } from './p2-errors.js'
import { judgeRequest } from './p2-request.js'

const BODY_LIMIT_BYTES = 256 * 1024
const SUCCESS = 3000

/** POST /api/v1/tts: the whole speech in one JSON answer. Of the magic words `#err…` and `#bytes=N` apply. */
export async function serveQuery(
  exchange: Exchange,
  headers: Readonly<Record<string, string>>,
  context: P2Context,
): Promise<void> {
  const body = await exchange.readBody(BODY_LIMIT_BYTES)
  const json = body === undefined ? undefined : parseJsonObject(body)
  try {
    if (json === undefined) violate('body is not a JSON object')
    const request = judgeRequest(json, context, 'http')
    const { failure, bytes } = readWish(request.text)
    if (failure !== undefined) throw new P2Rejection(failure.code, failure.text)
    const audio = Buffer.concat([...speak(request, bytes)])
    const answer = {
      reqid: request.reqid,
      code: SUCCESS,
      operation: 'query',
      message: 'Success',
      sequence: -1,
      data: audio.toString('base64'),
      addition: { duration: String(Math.round(speechDurationMs(request.text, request.speed))) },
    }
    await exchange.send(200, headers, JSON.stringify(answer))
  } catch (error) {
    if (!(error instanceof P2Rejection)) throw error
    if (error.isViolation) exchange.request.violations.push(error.message)
    const answer = { reqid: '', code: error.code, operation: 'query', message: error.message, sequence: 0, data: '' }
    // Only 3031 with 500 is known from reports; the other statuses follow from whose fault it is.
    const status = [3001, 3006, 3010, 3011, 3050].includes(error.code) ? 400 : 500
    await exchange.send(status, headers, JSON.stringify(answer))
  }
}
