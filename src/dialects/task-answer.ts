import type { Call } from '../core/request-context.js'
import { UpstreamAnswer } from '../core/upstream-answer.js'

/** The upstream's own word for success, where nobody has a better one. */
const SUCCESS_MESSAGE = 'SUCCEED'

/**
 * JSON text of a success in the task dialect (specification: Envelope of every response). `dataText` is JSON text and
 * stays as it is: big integers and unknown fields travel on.
 */
export const successEnvelope = (requestId: string, dataText: string, message = SUCCESS_MESSAGE): string =>
  `{"code":0,"message":${JSON.stringify(message)},"request_id":${JSON.stringify(requestId)},"data":${dataText}}`

/** The answer to a call in the task dialect; `dataText` as above. */
export const taskAnswer = (call: Call, dataText: string, message?: string): UpstreamAnswer =>
  jsonTextAnswer(200, successEnvelope(call.requestId, dataText, message))

/** Complete JSON text as an answer. */
export const jsonTextAnswer = (
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): UpstreamAnswer => new UpstreamAnswer(status, { ...headers, 'content-type': 'application/json' }, Buffer.from(text))
