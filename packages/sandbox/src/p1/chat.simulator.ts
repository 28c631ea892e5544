import type { Exchange } from '../server/exchange.js'
import { type OpenAiFaultOptions, openAiFaults, OpenAiRejection } from '../server/openai-errors.js'
import { chatTally, tokenUnits } from '../server/served-usage.js'
import { chatChunks, spokenChunks } from './chat-chunks.js'
import { chatCompletion, chatUsage, decideAnswer, speakAnswer, type SpokenAnswer } from './chat-completion.js'
import { type ChatRequest, judgeChatRequest } from './chat-request.js'
import { lastUserText } from './chat-text.js'
import { answerJson, pretty } from './json-request.js'
import { type P1Context, p1Headers } from './p1-context.js'

/** POST /v1/chat/completions. */
export async function serveChat(exchange: Exchange, context: P1Context): Promise<void> {
  const headers = p1Headers(exchange, { tokenLimits: true })
  const options: OpenAiFaultOptions = { headers, render: pretty, lineEnd: '\n' }
  const knowsAudio = (id: string): boolean => (context.audioAnswers.get(id) ?? 0) > Date.now() / 1000
  await answerJson(exchange, options, lastUserText, async (body) => {
    const request = judgeChatRequest(body, { acceptUnknownFields: context.acceptUnknownFields, knowsAudio })
    await answer(exchange, context, request, options)
  })
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
  const tally = chatTally(Number(chatUsage(request, 0)['prompt_tokens']))
  await exchange.stream(200, headers, frames, openAiFaults(options), tally.note)
  exchange.serve(request.model, tally.units)
}
