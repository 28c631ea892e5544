import { describe, expect, it } from '@jest/globals'
import type { KeptItem, KeptResponse, KeptResponses } from '../../src/responses/kept-responses.js'
import { laterMillisecond } from '../support/eventually.js'

const NO_LIMIT = 1024 * 1024

let count = 0

const item = (id: string, more: object = {}, isMade = false): KeptItem => ({
  id,
  text: JSON.stringify({ id, type: 'message', ...more }),
  isMade,
})

/** With ids that no test has used, one item in and one out. */
function someResponse(given: Partial<KeptResponse> = {}): KeptResponse {
  count += 1
  const id = `resp_${count}`
  return {
    ownerId: `owner-${count}`,
    id,
    previousId: undefined,
    input: [item(`msg_${count}_in`)],
    output: [item(`msg_${count}_out`, {}, true)],
    response: `{"id":"${id}","output":[],"n":1.50}`,
    ...given,
  }
}

/** Three, each of which goes on with the one before. */
async function conversationOfThree(kept: KeptResponses) {
  const first = someResponse()
  const second = someResponse({ ownerId: first.ownerId, previousId: first.id })
  const third = someResponse({ ownerId: first.ownerId, previousId: second.id })
  for (const response of [first, second, third]) await kept.keep(response)
  return [first, second, third] as const
}

const itemsOf = (responses: readonly KeptResponse[]): readonly KeptItem[] =>
  responses.flatMap(({ input, output }) => [...input, ...output])
const bytesOf = (items: readonly KeptItem[]): number =>
  items.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0)

/** What every store of responses does; `keptOf` is asked anew in each test, whose store is empty. */
export function describeKeptResponses(name: string, keptOf: () => KeptResponses): void {
  describe(`kept responses in ${name}`, () => {
    it('are read as they were kept, each text as it is spelled', async () => {
      const kept = keptOf()
      const spelled = { id: 'msg_a', text: '{ "n" : 1.0, "e":1e400, "t":"\\u0000 ü \\ud800" }', isMade: false }
      const more = [item('rs_b', {}, true), item('msg_c', {}, true)]
      const { ownerId, id, response } = someResponse()
      await kept.keep({ ownerId, id, previousId: undefined, input: [spelled, item('msg_b')], output: more, response })
      expect(await kept.find(ownerId, id)).toEqual({ response, output: more.map(({ text }) => text) })
      expect(await kept.inputOf(ownerId, id)).toEqual([spelled, item('msg_b')])
      expect(await kept.conversation(ownerId, id, NO_LIMIT)).toEqual({
        state: 'whole',
        items: [spelled, item('msg_b'), ...more],
      })
    })

    it('may have no items at all', async () => {
      const kept = keptOf()
      const { ownerId, id, response } = someResponse()
      await kept.keep({ ownerId, id, previousId: undefined, input: [], output: [], response })
      expect(await kept.find(ownerId, id)).toEqual({ response, output: [] })
      expect(await kept.inputOf(ownerId, id)).toEqual([])
      expect(await kept.conversation(ownerId, id, NO_LIMIT)).toEqual({ state: 'whole', items: [] })
    })

    it('are an owner’s own, also where two have the same ids', async () => {
      const kept = keptOf()
      const one = someResponse()
      const other = { ...one, ownerId: 'another', response: '{"other":true,"output":[]}' }
      const [input] = one.input
      const ids = [String(input?.id)]
      await kept.keep(one)
      expect(await kept.find('another', one.id)).toBeUndefined()
      expect(await kept.inputOf('another', one.id)).toBeUndefined()
      expect(await kept.conversation('another', one.id, NO_LIMIT)).toEqual({ state: 'missing', id: one.id })
      expect([...((await kept.items('another', ids, NO_LIMIT)) ?? [])]).toEqual([])
      expect(await kept.delete('another', one.id)).toBe(false)
      await kept.keep(other)
      expect(await kept.delete('another', one.id)).toBe(true)
      expect(await kept.find(one.ownerId, one.id)).toMatchObject({ response: one.response })
    })

    it('stay as they were first kept', async () => {
      const kept = keptOf()
      const response = someResponse()
      await kept.keep(response)
      await kept.keep({ ...response, input: [], response: '{}' })
      expect(await kept.find(response.ownerId, response.id)).toMatchObject({ response: response.response })
      expect(await kept.inputOf(response.ownerId, response.id)).toEqual(response.input)
    })

    it('are a conversation with those before them, in order', async () => {
      const kept = keptOf()
      const responses = await conversationOfThree(kept)
      const [first, second, third] = responses
      const { ownerId } = first
      expect(await kept.conversation(ownerId, third.id, NO_LIMIT)).toEqual({
        state: 'whole',
        items: itemsOf(responses),
      })
      const items = itemsOf([first, second])
      expect(await kept.conversation(ownerId, second.id, NO_LIMIT)).toEqual({ state: 'whole', items })
    })

    it('are no conversation beyond a size', async () => {
      const kept = keptOf()
      const responses = await conversationOfThree(kept)
      const bytes = bytesOf(itemsOf(responses))
      const [{ ownerId }, , { id }] = responses
      expect(await kept.conversation(ownerId, id, bytes)).toMatchObject({ state: 'whole' })
      expect(await kept.conversation(ownerId, id, bytes - 1)).toEqual({ state: 'too_large' })
      expect(await kept.conversation(ownerId, id, 1)).toEqual({ state: 'too_large' })
    })

    it('are no conversation without one that is deleted, and the others stay', async () => {
      const kept = keptOf()
      const [first, second, third] = await conversationOfThree(kept)
      const { ownerId } = first
      expect(await kept.delete(ownerId, first.id)).toBe(true)
      expect(await kept.delete(ownerId, first.id)).toBe(false)
      expect(await kept.find(ownerId, first.id)).toBeUndefined()
      expect(await kept.conversation(ownerId, third.id, NO_LIMIT)).toEqual({ state: 'missing', id: first.id })
      expect(await kept.find(ownerId, second.id)).toBeDefined()
      const ids = itemsOf([first]).map(({ id }) => id)
      expect([...((await kept.items(ownerId, ids, NO_LIMIT)) ?? [])]).toEqual([])
    })

    it('give single items by their ids, also what stands in several responses', async () => {
      const kept = keptOf()
      const made = item('msg_made', { content: 'as it was made' }, true)
      const { ownerId, id } = someResponse()
      await kept.keep(someResponse({ ownerId, id, output: [made] }))
      await kept.keep(
        someResponse({ ownerId, input: [item('msg_made', { content: 'as it came back' }), item('msg_x')] }),
      )
      const found = await kept.items(ownerId, ['msg_made', 'msg_x', 'msg_unknown'], NO_LIMIT)
      expect(found).toEqual(
        new Map([
          ['msg_made', made],
          ['msg_x', item('msg_x')],
        ]),
      )
      const bytes = bytesOf([made, item('msg_x')])
      expect(await kept.items(ownerId, ['msg_made', 'msg_x'], bytes)).toBeDefined()
      expect(await kept.items(ownerId, ['msg_made', 'msg_x'], bytes - 1)).toBeUndefined()
    })

    it('older than a time are pruned, the oldest first, so many at once', async () => {
      const kept = keptOf()
      const [older, old] = [someResponse(), someResponse()]
      for (const response of [older, old]) {
        await kept.keep(response)
        await laterMillisecond()
      }
      const beforeMs = Date.now()
      const young = someResponse()
      await kept.keep(young)
      expect(await kept.prune(beforeMs, 1)).toBe(1)
      expect(await kept.find(older.ownerId, older.id)).toBeUndefined()
      expect(await kept.find(old.ownerId, old.id)).toBeDefined()
      expect(await kept.prune(beforeMs, 100)).toBe(1)
      expect(await kept.prune(beforeMs, 100)).toBe(0)
      expect(await kept.find(young.ownerId, young.id)).toBeDefined()
    })
  })
}
