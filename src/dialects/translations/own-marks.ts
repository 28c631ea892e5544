import { JsonBody } from '../../core/json-body.js'
import { jsonTextOf, JsonTexts } from '../../core/json-text.js'
import { isRecord } from '../../core/validation-rules.js'
import { hasMark, SEAL_PREFIX } from './seals.js'

/*
 * What the gateway has signed or sealed for a client means nothing to a real upstream, which would refuse it: a conversation may have
 * begun with a translated model, and go on with one that speaks the client's dialect itself.
 */

const MARK = Buffer.from(`"${SEAL_PREFIX}`)

type Members = Readonly<Record<string, unknown>>

const isOwnThinking = (block: unknown): boolean =>
  isRecord(block) && block['type'] === 'thinking' && hasMark(block['signature'])

const isOwnReasoning = (item: unknown): boolean =>
  isRecord(item) && item['type'] === 'reasoning' && hasMark(item['encrypted_content'])

const hasOwnThinking = (message: unknown): message is Members & { readonly content: readonly unknown[] } =>
  isRecord(message) && Array.isArray(message['content']) && message['content'].some(isOwnThinking)

/** A messages request without thinking blocks that the gateway has made; nearly always the very same. */
export function withoutOwnThinking<Fields extends { readonly messages: readonly unknown[] }>(
  body: JsonBody<Fields>,
): JsonBody<Fields> {
  if (!body.bytes.includes(MARK) || !body.fields.messages.some(hasOwnThinking)) return body
  const texts = new JsonTexts(body.bytes)
  const messages = body.fields.messages.flatMap((message, index): readonly unknown[] => {
    const text = texts.at('messages', index)
    if (!hasOwnThinking(message)) return [text?.text]
    const kept = message.content.flatMap((block, position) =>
      isOwnThinking(block) ? [] : [text?.at('content', position)?.text],
    )
    // A message of such thoughts alone would be empty.
    return kept.length === 0 ? [] : [{ ...textsOf(message, text), content: kept }]
  })
  return edited(body, { messages: jsonTextOf(messages) })
}

/** A request for a response without reasoning that the gateway has sealed; nearly always the very same. */
export function withoutOwnReasoning<Fields extends { readonly input?: unknown }>(
  body: JsonBody<Fields>,
): JsonBody<Fields> {
  const { input } = body.fields
  if (!Array.isArray(input) || !body.bytes.includes(MARK) || !input.some(isOwnReasoning)) return body
  const texts = new JsonTexts(body.bytes)
  const kept = input.flatMap((item, index) => (isOwnReasoning(item) ? [] : [texts.at('input', index)?.text]))
  return edited(body, { input: jsonTextOf(kept) })
}

/** The members of an object as they were spelled. */
const textsOf = (members: Members, texts: JsonTexts | undefined): Members =>
  Object.fromEntries(Object.keys(members).map((name) => [name, texts?.at(name)?.text]))

const edited = <Fields extends object>(
  body: JsonBody<Fields>,
  edits: Readonly<Record<string, string>>,
): JsonBody<Fields> => JsonBody.parse(body.edited(edits), { source: 'upstream' }).as(body.fields)
