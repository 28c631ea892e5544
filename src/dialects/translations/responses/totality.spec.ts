import { readFileSync } from 'node:fs'
import { describe, expect, it } from '@jest/globals'
import { ResponsesTranslation } from '../../../../test/support/responses-translation.js'
import { thrownBy } from '../../../../test/support/translation.js'
import { FIELDS as CHAT_FIELDS } from '../responses-over-chat/request.js'
import { responsesOverChat } from '../responses-over-chat/responses-over-chat.js'
import { FIELDS as MESSAGES_FIELDS } from '../responses-over-messages/request.js'
import { responsesOverMessages } from '../responses-over-messages/responses-over-messages.js'
import { ITEM_TYPES } from './conversation.js'

const TYPES = readFileSync('node_modules/openai/resources/responses/responses.d.ts', 'utf8')

/** Members of an interface of the vendor's client, by their indentation. */
function membersOf(name: string, isOptional = '\\??'): readonly string[] {
  const [, body = ''] =
    new RegExp(`^export interface ${name}(?: extends [^{]*)? \\{\\n([^]*?)^\\}`, 'm').exec(TYPES) ?? []
  return [...body.matchAll(new RegExp(`^ {4}(\\w+)${isOptional}:`, 'gm'))].map(([, member = '']) => member)
}

/** Literals of `type` of each member of a union of the vendor's client. */
function typesIn(union: string): readonly string[] {
  const [, members = ''] = new RegExp(`^export type ${union} = ([^;]*);`, 'm').exec(TYPES) ?? []
  return members.split('|').flatMap((member) => {
    const name = member.trim().split('.').at(-1) ?? ''
    const [, indent = '', body = ''] =
      new RegExp(`^( *)(?:export )?interface ${name} \\{\\n([^]*?)\\n\\1\\}`, 'm').exec(TYPES) ?? []
    const [, literals = ''] = new RegExp(`^${indent} {4}type\\??: ([^;]*);`, 'm').exec(body) ?? []
    return [...literals.matchAll(/'([^']*)'/g)].map(([, literal = '']) => literal)
  })
}

const translators = [
  ['chat', (request: object) => new ResponsesTranslation('chat', responsesOverChat, request)],
  ['messages', (request: object) => new ResponsesTranslation('messages', responsesOverMessages, request)],
] as const

describe.each([
  ['chat', CHAT_FIELDS],
  ['messages', MESSAGES_FIELDS],
] as const)('The table for %s', (_upstream, table) => {
  it('has a verdict for every field of the vendor’s client, and for no other', () => {
    const names = membersOf('ResponseCreateParamsBase')
    expect(names).toContain('truncation')
    expect(Object.keys(table).toSorted()).toEqual(names.toSorted())
  })
})

describe.each(translators)('Over %s', (_upstream, translate) => {
  it('every type of tool of the vendor’s client is translated or refused', () => {
    const types = new Set(typesIn('Tool'))
    expect(types.size).toBeGreaterThan(15)
    const requestWith = (type: string): object => ({ input: 'Hi', tools: [{ type, name: 'a' }] })
    for (const type of ['function', 'custom']) {
      expect(types.delete(type)).toBe(true)
      expect(translate(requestWith(type)).sent['tools']).toHaveLength(1)
    }
    for (const type of types) {
      expect([type, thrownBy(() => translate(requestWith(type))).details.param]).toEqual([type, 'tools[0].type'])
    }
  })

  it('every type of item of the vendor’s client is translated or refused', () => {
    const types = new Set(typesIn('ResponseInputItem'))
    expect(types.size).toBeGreaterThan(25)
    for (const type of types) {
      if (ITEM_TYPES.includes(type)) continue
      const { code, param } = thrownBy(() => translate({ input: [{ type, id: 'a' }] })).details
      expect([type, code, param]).toEqual([
        type,
        'unsupported_value',
        type === 'item_reference' ? 'input[0]' : 'input[0].type',
      ])
    }
    expect(ITEM_TYPES.filter((type) => !types.has(type))).toEqual([])
  })

  it('answers have every member of the type that is always there', () => {
    const { translation } = translate({ input: 'Hi' })
    const events = translation.events()
    const frames = events.event({ type: 'message_start', message: {}, choices: [] })
    // The client computes the text.
    const needed = membersOf('Response', '').filter((name) => name !== 'output_text')
    expect(needed.length).toBeGreaterThan(8)
    for (const name of needed) expect(frames).toContain(`"${name}":`)
  })
})
