import type { Exchange } from '../server/exchange.js'
import { parseJsonObject } from '../server/json-value.js'
import {
  type OpenAiFaultOptions,
  openAiFaults,
  OpenAiRejection,
  reject,
  sendRejection,
} from '../server/openai-errors.js'
import { ChatTally, tokenUnits } from '../server/served-usage.js'
import { chatChunks, spokenChunks } from './chat-chunks.js'
import { chatCompletion, chatUsage, decideAnswer, speakAnswer, type SpokenAnswer } from './chat-completion.js'
import { type ChatRequest, judgeChatRequest } from './chat-request.js'
import { lastUserText } from './chat-text.js'
import { type P1Context, p1Headers } from './p1-context.js'

/** 64 MiB: audio parts arrive as base64 inside the JSON. */
const BODY_LIMIT_BYTES = 64 * 1024 * 1024

/** POST /v1/chat/completions. */
export async function serveChat(exchange: Exchange, context: P1Context): Promise<void> {
  const headers = p1Headers(exchange, { tokenLimits: true })
  const options: OpenAiFaultOptions = { headers, render: pretty, lineEnd: '\n' }
  const faults = openAiFaults(options)
  const bytes = await exchange.readBody(BODY_LIMIT_BYTES)
  const body = bytes === undefined ? undefined : parseJsonObject(bytes)
  if (await exchange.answeredByFault(faults, body === undefined ? undefined : lastUserText(body))) return
  try {
    if (bytes === undefined) throw new OpenAiRejection(413, 'Request body too large.', { type: 'server_error' })
    judgeContentType(exchange)
    if (body === undefined)
      reject(
        'We could not parse the JSON body of your request. (HINT: This likely means you aren’t using your HTTP library correctly.)',
      )
    const knowsAudio = (id: string): boolean => (context.audioAnswers.get(id) ?? 0) > Date.now() / 1000
    const request = judgeChatRequest(body, { acceptUnknownFields: context.acceptUnknownFields, knowsAudio })
    await answer(exchange, context, request, options)
  } catch (error) {
    await sendRejection(exchange, error, options)
  }
}

async function answer(
  exchange: Exchange,
  context: P1Context,
  request: ChatRequest,
  options: OpenAiFaultOptions,
): Promise<void> {
  const decided = decideAnswer(request)
  const format = request.audioFormat ?? 'pcm16'
  const speak = (words: string): SpokenAnswer => speakAnswer(context, words, format)
  if (!request.stream) {
    if (exchange.takeErrorFrame())
      throw new OpenAiRejection(500, 'The server had an error while processing your request.', { type: 'server_error' })
    const completion = chatCompletion(request, decided, speak)
    exchange.serve(request.model, tokenUnits(completion['usage']))
    await exchange.send(200, { ...options.headers, 'content-type': 'application/json' }, pretty(completion))
    return
  }
  const isSpoken = request.audioFormat !== undefined && decided.kind === 'text'
  const frames = isSpoken ? spokenChunks(request, decided.newRun(), speak) : chatChunks(request, decided)
  const headers = {
    ...options.headers,
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
  }
  const tally = new ChatTally(Number(chatUsage(request, 0)['prompt_tokens']))
  await exchange.stream(200, headers, frames, openAiFaults(options), tally.note)
  exchange.serve(request.model, tally.units)
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

/** Chat bodies are printed with two-space indent. */
function pretty(body: Readonly<Record<string, unknown>>): string {
  return `${JSON.stringify(body, null, 2)}\n`
}
