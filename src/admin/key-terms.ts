import type { KeyChange, KeyTerms } from '../auth/key.repository.js'
import type { KeyChangeDto, NewKeyDto } from './keys.dto.js'

/** What a body wants of a new key: null is as good as absent. */
export function termsOf({ id, models, limits, note, expires_at: expiresAtMs }: NewKeyDto) {
  const terms: KeyTerms & { id?: string } = {
    ...(isGiven(id) && { id }),
    ...(isGiven(models) && { models }),
    ...(isGiven(limits) && { limits }),
    ...(isGiven(note) && { note }),
    ...(isGiven(expiresAtMs) && { expiresAtMs }),
  }
  return terms
}

/** What a body wants to be changed: null takes away. */
export const changeOf = ({ models, limits, note, expires_at: expiresAtMs }: KeyChangeDto): KeyChange => ({
  ...(models !== undefined && { models }),
  ...(limits !== undefined && { limits }),
  ...(note !== undefined && { note }),
  ...(expiresAtMs !== undefined && { expiresAtMs }),
})

const isGiven = <Value>(value: Value | null | undefined): value is Value => value !== null && value !== undefined
