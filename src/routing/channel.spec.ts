import { describe, expect, it } from '@jest/globals'
import type { ModelRow } from '../config/channel-schema.js'
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

  it('stands alone where the catalogue does not know the model', () => {
    const row: ModelRow = { id: 'other', class: 'chat', providers: ['p1'] }
    expect(new ModelCatalogue([BUILT_IN], [row]).find('other')).toEqual(row)
  })
})
