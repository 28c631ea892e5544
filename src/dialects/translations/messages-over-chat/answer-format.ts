import { isAbsent, objectAt } from '../members.js'
import type { ChatRequestDraft, MemberTable } from './request-draft.js'
import { isClosedSchema } from '../strict-schema.js'

/** The members of the format of an answer. */
export const FORMAT_MEMBERS: MemberTable = { type: 'read', schema: 'read' }

/** What a strict caller can do, whatever keeps its schema from being strict. */
const CLOSED_SCHEMA =
  'Send a schema that chat takes as strict: of an object, with all properties required and no others allowed at any depth, and ' +
  'without keywords such as allOf, formats such as uri, or members beside $ref'

/** `steps`: where the format stands in the request. */
export function translateFormat(value: unknown, steps: readonly string[], draft: ChatRequestDraft): void {
  if (isAbsent(value)) return
  const path = steps.join('.')
  const members = objectAt(value, path)
  if (members['type'] !== 'json_schema') draft.verdicts.refuse(`${path}.type`, 'Send a json_schema.')
  draft.checkMembers(members, path, FORMAT_MEMBERS)
  const strict = isClosedSchema(objectAt(members['schema'], `${path}.schema`))
  if (!strict) draft.verdicts.approximate(path, CLOSED_SCHEMA)
  const text = draft.texts.at(...steps, 'schema')?.text
  const schema = text === undefined ? {} : { schema: draft.from(`${path}.schema`, text) }
  draft.set('response_format', { type: 'json_schema', json_schema: { name: 'answer', ...schema, strict } }, path)
}
