import { describe, expect, it } from '@jest/globals'
import { CallIds } from './tool-forms.js'

const idOf = (id: string): string => new CallIds().next(id)

describe('The id of a call of a tool, for a messages upstream', () => {
  it.each(['call_abc', 'toolu_01', 'a', 'x'.repeat(64)])('stays as it is where the upstream takes it: %s', (id) => {
    expect(idOf(id)).toBe(id)
  })

  it.each(['', 'a b', 'functions.get:0', 'x'.repeat(65), 'é'])(
    'is one that the upstream takes, always the same: %s',
    (id) => {
      const made = idOf(id)
      expect(made).toMatch(/^t_[a-z2-7]{52}$/)
      expect(idOf(id)).toBe(made)
      expect(idOf(`${id}.`)).not.toBe(made)
    },
  )

  it('is another one for each call of a conversation, the same in every request', () => {
    const [calls, results] = [new CallIds(), new CallIds()]
    const idsOf = (ids: CallIds): string[] => ['a', 'b', 'a', 'a'].map((id) => ids.next(id))
    const made = idsOf(calls)
    expect(made.slice(0, 2)).toEqual(['a', 'b'])
    expect(new Set(made).size).toBe(4)
    expect(idsOf(results)).toEqual(made)
  })

  it.each([[['a 1']], [['["a",1]']], [['a b', 'a b 1']], [['1 1', '1']]])(
    'is not that of another call: %j',
    (others) => {
      const ids = new CallIds()
      const made = ['a', 'a', ...others, ...others, 'a'].map((id) => ids.next(id))
      expect(new Set(made).size).toBe(made.length)
      for (const id of made) expect(id).toMatch(/^[\w-]{1,64}$/)
    },
  )
})
