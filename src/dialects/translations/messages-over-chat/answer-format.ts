import { isAbsent, objectAt } from '../members.js'
import type { ChatRequestDraft, MemberTable } from './request-draft.js'
import { isClosedSchema } from '../strict-schema.js'

/** The members of the format of an answer. */
export const FORMAT_MEMBERS: MemberTable = { type: 'read', schema: 'read' }

/** `steps`: where the format stands in the request. */
export function translateFormat(value: unknown, steps: readonly string[], draft: ChatRequestDraft): void {
  if (isAbsent(value)) return
  const path = steps.join('.')
  const members = objectAt(value, path)
  if (members['type'] !== 'json_schema') draft.verdicts.refuse(`${path}.type`, 'Send a json_schema.')
  draft.checkMembers(members, path, FORMAT_MEMBERS)
  const strict = isClosedSchema(objectAt(members['schema'], `${path}.schema`))
  if (!strict) draft.verdicts.approximate(path, 'Require all properties of its objects and allow no others')
  const text = draft.texts.at(...steps, 'schema')?.text
  const schema = text === undefined ? {} : { schema: draft.from(`${path}.schema`, text) }
  draft.set('response_format', { type: 'json_schema', json_schema: { name: 'answer', ...schema, strict } }, path)
}
