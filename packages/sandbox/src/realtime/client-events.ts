import { isObject, type JsonObject, listOf as itemsOf } from '../server/json-value.js'
import { decodeBase64 } from './base64-audio.js'
import { itemFromBeta, type RealtimeDialect } from './realtime-dialect.js'
import { RealtimeRejection } from './realtime-rejection.js'
import { anything, byType, type Check, listOf, nullable, objectOf, oneOf, text } from './validation.js'

const LONGEST_ID = 32
const id = text(LONGEST_ID)

const audio: Check = (value, path) => {
  const encoded = text()(value, path) as string
  if (decodeBase64(encoded) === undefined) {
    throw new RealtimeRejection('invalid_value', `Invalid '${path}'. Expected base64-encoded audio bytes.`, path)
  }
  return encoded
}

const inputText = objectOf({ type: anything, text: text() }, ['text'])
const inputAudio = objectOf({ type: anything, audio, transcript: nullable(text()) }, ['audio'])
const inputImage = objectOf({ type: anything, image_url: text(), detail: oneOf('auto', 'low', 'high') }, ['image_url'])
const spokenText = objectOf({ type: anything, text: text() }, ['text'])
const spokenAudio = objectOf({ type: anything, audio, transcript: nullable(text()) })

const PARTS: Readonly<Record<RealtimeDialect, Readonly<Record<string, Check>>>> = {
  ga: {
    system: byType({ input_text: inputText }),
    user: byType({ input_text: inputText, input_audio: inputAudio, input_image: inputImage }),
    assistant: byType({ output_text: spokenText, output_audio: spokenAudio }),
  },
  beta: {
    system: byType({ input_text: inputText }),
    user: byType({ input_text: inputText, input_audio: inputAudio }),
    assistant: byType({ text: spokenText, audio: spokenAudio }),
  },
}

const commonItemFields = {
  id,
  object: oneOf('realtime.item'),
  type: anything,
  status: oneOf('completed', 'incomplete', 'in_progress'),
}

const functionCall = objectOf({ ...commonItemFields, call_id: id, name: text(64), arguments: text() }, [
  'name',
  'arguments',
])
const functionCallOutput = objectOf({ ...commonItemFields, call_id: id, output: text() }, ['call_id', 'output'])
const itemReference = objectOf({ ...commonItemFields, id }, ['id'])

/**
 * Judges an item of `conversation.item.create`, or with `withReferences` one of `response.create`, and gives it back in
 * GA form. Throws RealtimeRejection.
 */
export function checkItem(dialect: RealtimeDialect, item: unknown, path: string, withReferences = false): JsonObject {
  const message: Check = (value, at) => checkMessage(dialect, value, at)
  const checks = { message, function_call: functionCall, function_call_output: functionCallOutput }
  const allowed = withReferences ? { ...checks, item_reference: itemReference } : checks
  const checked = byType(allowed)(item, path) as JsonObject
  return dialect === 'beta' ? itemFromBeta(checked) : checked
}

function checkMessage(dialect: RealtimeDialect, value: unknown, path: string): unknown {
  const roles = PARTS[dialect]
  const role = oneOf(...Object.keys(roles))
  const fields = { ...commonItemFields, role, content: listOf(anything) }
  const message = objectOf(fields, ['role', 'content'])(value, path)
  if (!isObject(message)) return message
  const part = roles[String(message['role'])] ?? anything
  return {
    ...message,
    content: itemsOf(message['content']).map((one, index) => part(one, `${path}.content[${index}]`)),
  }
}
