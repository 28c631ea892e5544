import { isObject, type JsonObject, listOf, objectsOf, textOf } from '../server/json-value.js'
import { M1Rejection, reject } from './m1-errors.js'
import { judgeFields, judgeModelLimits, type M1Version, VERSIONS } from './m1-field-rules.js'
import { judgeMessages } from './m1-message-rules.js'
import { m1Model, type M1Model } from './m1-models.js'
import { judgeReturnedThinking, judgeThinking, type Thinking } from './thinking-rules.js'
import { judgeTools } from './tool-rules.js'

/** A request that was found good. */
export interface M1Request {
  readonly body: JsonObject
  readonly model: M1Model
  readonly messages: readonly JsonObject[]
  readonly stream: boolean
  readonly thinking: Thinking | undefined
  readonly maxTokens: number
  readonly stopSequences: readonly string[]
  /** The text of the last user message. */
  readonly callerText: string
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
export function judgeM1Request(
  body: JsonObject,
  options: { version: M1Version; betas: readonly string[]; counting: boolean },
): M1Request {
  judgeFields(body, options.version, options.counting)
  const model = m1Model(textOf(body['model']))
  judgeModelLimits(body, model)
  judgeMessages(body, options.version, model)
  judgeTools(body)
  const thinking = judgeThinking(body, model, options.betas)
  const messages = objectsOf(body['messages'])
  judgeReturnedThinking(messages, thinking !== undefined)
  return {
    body,
    model,
    messages,
    stream: body['stream'] === true,
    thinking,
    maxTokens: typeof body['max_tokens'] === 'number' ? body['max_tokens'] : 0,
    stopSequences: listOf(body['stop_sequences']).map(textOf),
    callerText: lastUserText(body),
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
