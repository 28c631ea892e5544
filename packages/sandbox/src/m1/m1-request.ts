import { fieldOf, isObject, type JsonObject, listOf, objectsOf, textOf } from '../server/json-value.js'
import { M1Rejection, reject } from './m1-errors.js'
import { judgeFields, judgeModelLimits, type M1Terms, type M1Version, VERSIONS } from './m1-field-rules.js'
import { judgeMessages } from './m1-message-rules.js'
import { type M1Model, m1Model } from './m1-models.js'
import { judgeReturnedThinking, type M1ThinkingMode, saidIndex } from './m1-thoughts.js'
import type { M1Threads } from './m1-threads.js'
import { judgeTools } from './m1-tool-rules.js'

interface Thinking {
  readonly type: M1ThinkingMode
  readonly display: 'summarized' | 'omitted'
}

const MIN_BUDGET_TOKENS = 1024
const INTERLEAVED_BETA = 'interleaved-thinking-2025-05-14'

/** Judges `thinking` and what it forbids elsewhere (section 6 of the messages notes). Undefined when it is off. */
function judgeThinking(body: JsonObject, model: M1Model, betas: readonly string[]): Thinking | undefined {
  const thinking = body['thinking']
  if (!isObject(thinking)) return undefined
  const type = textOf(thinking['type'])
  if (!['enabled', 'adaptive', 'disabled', 'between_tools'].includes(type)) {
    reject(
      "thinking: Input tag found using 'type' does not match any of the expected tags: 'disabled', 'enabled', 'adaptive'",
    )
  }
  if (type === 'disabled' || type === 'between_tools') {
    if (type !== model.thinkingOff) unsupportedThinking(type)
    return undefined
  }
  if (type === 'enabled') judgeBudget(thinking, body, model, betas)
  else if (!model.adaptive) reject('adaptive thinking is not supported on this model')
  judgeCompanions(body)
  const display = thinking['display'] ?? 'summarized'
  if (display !== 'summarized' && display !== 'omitted') {
    reject(`thinking.${type}.display: Input should be 'summarized' or 'omitted'`)
  }
  return { type: type === 'enabled' ? type : 'adaptive', display }
}

function unsupportedThinking(type: string): never {
  const advice = 'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
  reject(`"thinking.type.${type}" is not supported for this model. ${advice}`)
}

function judgeBudget(thinking: JsonObject, body: JsonObject, model: M1Model, betas: readonly string[]): void {
  if (!model.classic) unsupportedThinking('enabled')
  const path = 'thinking.enabled.budget_tokens'
  const budget = thinking['budget_tokens']
  if (budget === undefined) reject(`${path}: Field required`)
  if (typeof budget !== 'number' || !Number.isInteger(budget)) reject(`${path}: Input should be a valid integer`)
  if (budget < MIN_BUDGET_TOKENS) reject(`${path}: Input should be greater than or equal to ${MIN_BUDGET_TOKENS}`)
  const maxTokens = body['max_tokens']
  if (typeof maxTokens === 'number' && budget >= maxTokens && !betas.includes(INTERLEAVED_BETA)) {
    reject('`max_tokens` must be greater than `thinking.budget_tokens`. Please consult the documentation.')
  }
}

function judgeCompanions(body: JsonObject): void {
  const { temperature, top_p: topP, top_k: topK } = body
  if (temperature !== undefined && temperature !== 1) {
    reject('`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.')
  }
  if (typeof topP === 'number' && topP < 0.95) {
    reject('`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled.')
  }
  if (topK !== undefined) reject('`top_k` must be unset when thinking is enabled.')
  const choice = fieldOf(body['tool_choice'], 'type')
  if (choice === 'any' || choice === 'tool') reject('Thinking may not be enabled when tool_choice forces tool use.')
  if (objectsOf(body['messages']).at(-1)?.['role'] === 'assistant') {
    reject(
      'When thinking is enabled, a final `assistant` message must start with a thinking block; prefill is not supported.',
    )
  }
}

/** A request that was found good. */
export interface M1Request {
  readonly body: JsonObject
  readonly model: M1Model
  readonly messages: readonly JsonObject[]
  readonly stream: boolean
  readonly thinking: Thinking | undefined
  /** Since the user spoke, those that came back without the thoughts that their ids sign. */
  readonly callsWithoutThoughts: number
  readonly maxTokens: number
  readonly stopSequences: readonly string[]
  /** The text of the last user message. */
  readonly callerText: string
  /** What the user said last, before the results of tools. */
  readonly saidText: string
}

/** Judges credential and version headers. Throws M1Rejection. */
export function judgeHeaders(headers: Readonly<Record<string, string>>, expectedKey: string | undefined): M1Version {
  const bearer = headers['authorization']
  const key = headers['x-api-key'] ?? /^Bearer (\S+)$/.exec(bearer ?? '')?.[1]
  if (key === undefined) throw new M1Rejection(401, 'x-api-key header is required')
  const accepted = expectedKey === undefined ? key !== 'bad' : key === expectedKey
  if (!accepted)
    throw new M1Rejection(401, headers['x-api-key'] === undefined ? 'Invalid bearer token' : 'invalid x-api-key')
  const version = headers['anthropic-version']
  if (version === undefined) reject('anthropic-version: header is required')
  const known = VERSIONS.find((candidate) => candidate === version)
  if (known === undefined) reject(`anthropic-version: "${version}" is not a valid version`)
  return known
}

/** Judges a body as strictly as the upstream. Throws M1Rejection. */
export function judgeM1Request(sent: JsonObject, terms: M1Terms, threads: M1Threads): M1Request {
  judgeFields(sent, terms)
  const body = threads.resumed(sent)
  const model = m1Model(textOf(body['model']))
  judgeModelLimits(body, model, terms.betas)
  judgeMessages(body, terms, model)
  judgeTools(body, model, terms.betas)
  const thinking = judgeThinking(body, model, terms.betas)
  const messages = objectsOf(body['messages'])
  return {
    body,
    model,
    messages,
    stream: body['stream'] === true,
    thinking,
    callsWithoutThoughts: judgeReturnedThinking(messages, thinking?.type),
    maxTokens: typeof body['max_tokens'] === 'number' ? body['max_tokens'] : 0,
    stopSequences: listOf(body['stop_sequences']).map(textOf),
    callerText: lastUserText(body),
    saidText: contentText(messages[saidIndex(messages)]?.['content']),
  }
}

export function lastUserText(body: JsonObject): string {
  return contentText(objectsOf(body['messages']).findLast((message) => message['role'] === 'user')?.['content'])
}

/** The text of a content value: its text blocks joined; tool results are left out. */
export function contentText(content: unknown): string {
  if (typeof content === 'string') return content
  return objectsOf(content)
    .filter((block) => block['type'] === 'text')
    .map((block) => textOf(block['text']))
    .join(' ')
}

/** The beta names of the request header, a comma list. */
export function betasOf(header: string | undefined): readonly string[] {
  return (header ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
}

export function toolResultTexts(message: JsonObject | undefined): readonly string[] {
  return objectsOf(message?.['content'])
    .filter((block) => isObject(block) && block['type'] === 'tool_result')
    .map((block) => contentText(block['content']))
}
