import { JsonText } from '../../core/json-text.js'
import { isRecord } from '../../core/validation-rules.js'
import { type Members, parsedOr } from './members.js'

/** The JSON of tools, in the spelling of who wrote it: numbers and the order of keys count. */

/** The input of a call, which messages want as an object. A model may have written anything: `whenOther` is told of it. */
export function inputOfArguments(text: string, whenOther: () => void = () => undefined): object {
  if (text.trim() === '') return {}
  if (isRecord(parsedOr(text))) return new JsonText(text)
  whenOther()
  return { arguments: text }
}

/** A tool's schema. Upstreams refuse one that does not say that it is of an object, which callers may leave out. */
export function objectSchema({ type }: Members, spelled: JsonText): JsonText {
  if (type !== undefined) return spelled
  const rest = spelled.text.slice(1)
  return new JsonText(`{"type":"object"${/^\s*\}/.test(rest) ? '' : ','}${rest}`)
}
