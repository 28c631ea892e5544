import { type JsonObject, objectsOf, textOf } from '../server/json-value.js'

/** The text of the last user message, its text parts joined; empty when there is none. */
export function lastUserText(body: JsonObject): string {
  const message = objectsOf(body['messages']).findLast((entry) => entry['role'] === 'user')
  return contentText(message?.['content'])
}

export function contentText(content: unknown): string {
  if (typeof content === 'string') return content
  return objectsOf(content)
    .map((part) => textOf(part['text']))
    .filter((text) => text !== '')
    .join(' ')
}
