import type { Exchange } from '../server/exchange.js'
import { type JsonObject, parseJsonObject } from '../server/json-value.js'
import {
  type OpenAiFaultOptions,
  openAiFaults,
  OpenAiRejection,
  reject,
  sendRejection,
} from '../server/openai-errors.js'

/** 64 MiB: audio, pictures and files arrive as base64 inside the JSON. */
const BODY_LIMIT_BYTES = 64 * 1024 * 1024

/**
 * Reads a request whose body is a JSON object and has it answered; what the judges refuse, and the faults that the caller's text
 * asks for, are answered here.
 */
export async function answerJson(
  exchange: Exchange,
  options: OpenAiFaultOptions,
  callerText: (body: JsonObject) => string | undefined,
  answer: (body: JsonObject) => Promise<void>,
  limitBytes = BODY_LIMIT_BYTES,
): Promise<void> {
  const bytes = await exchange.readBody(limitBytes)
  const body = bytes === undefined ? undefined : parseJsonObject(bytes)
  const text = body === undefined ? undefined : callerText(body)
  if (await exchange.answeredByFault(openAiFaults(options), text)) return
  try {
    if (bytes === undefined) throw new OpenAiRejection(413, 'Request body too large.', { type: 'server_error' })
    judgeContentType(exchange)
    if (body === undefined)
      reject(
        'We could not parse the JSON body of your request. (HINT: This likely means you aren’t using your HTTP library correctly.)',
      )
    await answer(body)
  } catch (error) {
    await sendRejection(exchange, error, options)
  }
}

function judgeContentType(exchange: Exchange): void {
  const type = exchange.request.headers['content-type'] ?? ''
  if (/^application\/json\s*(;|$)/i.test(type)) return
  reject(
    `Unsupported content type: '${type}'. This API method only accepts 'application/json' requests.`,
    null,
    'unsupported_content_type',
  )
}

/** Bodies are printed with two-space indent. */
export function pretty(body: Readonly<Record<string, unknown>>): string {
  return `${JSON.stringify(body, null, 2)}\n`
}
