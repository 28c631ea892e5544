import { describe, expect, it } from '@jest/globals'
import type { ModelRow } from '../config/channel-schema.js'
import { factsOf } from '../dialects/model-facts.js'
import { ModelCatalogue } from './channel.js'

const BUILT_IN: ModelRow = {
  id: 'thinker',
  class: 'chat',
  providers: ['p1'],
  reasons: true,
  facts: { efforts: ['low', 'high'], vision: false },
}

const rowWith = (own: Partial<ModelRow>): ModelRow | undefined =>
  new ModelCatalogue([BUILT_IN], [{ id: 'thinker', class: 'chat', providers: ['p4'], ...own }]).find('thinker')

describe('An operator’s row for a model of the catalogue', () => {
  it('replaces it, but for what it does not say of thinking and translations', () => {
    expect(rowWith({})).toEqual({ ...BUILT_IN, providers: ['p4'] })
  })

  it('has the last word on each of them', () => {
    expect(rowWith({ reasons: false, facts: { vision: true } })).toMatchObject({
      reasons: false,
      facts: { efforts: ['low', 'high'], vision: true },
    })
  })

  it.each([
    ['which it corrects', { reasons: false, facts: { thinking: 'none' } }, { reasons: true }, 'adaptive'],
    ['which it corrects', { reasons: true, facts: { thinking: 'adaptive' } }, { reasons: false }, 'none'],
    [
      'in its own words',
      { facts: { thinking: 'adaptive' } },
      { reasons: false, facts: { thinking: 'budget' } },
      'budget',
    ],
    ['which it repeats', { reasons: true, facts: { thinking: 'none' } }, { reasons: true }, 'none'],
    ['which it repeats', { reasons: false, facts: { thinking: 'adaptive' } }, { reasons: false }, 'adaptive'],
    ['which says more', { reasons: false, facts: { thinking: 'budget' } }, { reasons: true }, 'budget'],
    ['where it says nothing', { reasons: true, facts: { thinking: 'none' } }, { facts: { vision: false } }, 'none'],
  ] as const)('has the last word on how it thinks over the catalogue, %s: %j, %j', (_how, known, own, expected) => {
    const added: ModelRow = { id: 'thinker', class: 'chat', providers: ['p4'], ...own }
    const row = new ModelCatalogue([{ ...BUILT_IN, ...known }], [added]).find('thinker')
    expect(factsOf(row).thinking).toBe(expected)
  })

  it('stands alone where the catalogue does not know the model', () => {
    const row: ModelRow = { id: 'other', class: 'chat', providers: ['p1'] }
    expect(new ModelCatalogue([BUILT_IN], [row]).find('other')).toEqual(row)
  })
})
