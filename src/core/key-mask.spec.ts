import { describe, expect, it } from '@jest/globals'
import { hasKey, maskedName, maskedPath } from './key-mask.js'

const KEY = 'k3y-of_team/with.dots'
const PLAIN = 'plainkeyofteam'
const UUID = '0a1b2c3d-0000-4000-8000-000000000000'
const isKey = (text: string): boolean => [KEY, PLAIN, UUID].includes(text)

describe('A key that was typed where none belongs', () => {
  it.each([
    PLAIN,
    UUID,
    `Bearer ${PLAIN}`,
    `Bearer:${PLAIN}`,
    `Bearer+${PLAIN}`,
    `"${PLAIN}"`,
    `'${PLAIN}'`,
    `user@${PLAIN}`,
    `user:${PLAIN}`,
    `key=${PLAIN}&a=b`,
    `a|${PLAIN}`,
    `a#${PLAIN}`,
    `a\\${PLAIN}`,
    `(${PLAIN})`,
    `<${PLAIN}>`,
    `a*${PLAIN}!`,
    `Bearer%20${PLAIN}`,
    `Bearer%20${PLAIN}%`,
    `%zz%20${PLAIN}`,
    `${PLAIN}%20%ff`,
    `%70lainkeyofteam`,
    'sk-proj-abcdef0123456789',
    'Bearer%20sk-proj-abcdef0123456789%',
    'x.rk_live_abcdef0123',
  ])('is seen in %s', (text) => {
    expect(hasKey(text, isKey)).toBe(true)
    expect(maskedPath(`/v1/${text}/more`, isKey)).not.toContain(text)
  })

  it.each(['', 'gpt-4o', 'a-plainkeyofteam-b', 'task-1', 'a'.repeat(100), 'ask-proj-abcdef0123456789', '100%', '%'])(
    'is not seen in %j',
    (text) => {
      expect(hasKey(text, isKey)).toBe(false)
      expect(maskedName(text, isKey)).toBe(text)
    },
  )

  it('is seen behind a blank whatever it is made of', () => {
    expect(hasKey(`Bearer ${KEY}`, isKey)).toBe(true)
    expect(hasKey(`Bearer%20${encodeURIComponent(KEY)}`, isKey)).toBe(true)
  })

  it('is seen beside dots and brackets in the name of a model, or of a member', () => {
    for (const name of [`models.${PLAIN}`, `messages[0].${PLAIN}`, `[${PLAIN}]`])
      expect(maskedName(name, isKey)).toBe('[key]')
    expect(maskedName('messages[0].content[1].image_url.url', isKey)).toBe('messages[0].content[1].image_url.url')
  })

  it('is assumed where a caller lets too many pieces be looked up', () => {
    let digests = 0
    const count = (): boolean => {
      digests++
      return false
    }
    const pieces = Array.from({ length: 50 }, (_, index) => `pieces${100 + index}`)
    expect(hasKey(pieces.join(':'), count)).toBe(true)
    expect(maskedName(pieces.join('.'), count)).toBe('[key]')
    // The text as a whole.
    expect(digests).toBe(1)
    expect(hasKey(pieces.slice(0, 15).join(':'), count)).toBe(false)
    expect(digests).toBe(17)
  })
})

describe('A path in the log', () => {
  it('is cut, also where a key begins in what is shown', () => {
    const start = `/${'a/'.repeat(60)}`
    expect(maskedPath(`${start}${PLAIN}/b`, isKey)).toBe(`${start}[key]/b`)
    expect(maskedPath(`/${'a'.repeat(200)}`, isKey)).toHaveLength(128)
  })

  it('shows nothing of a key that has slashes', () => {
    expect(maskedPath(`/${KEY}`, isKey)).toBe('/[key]')
    expect(maskedPath(`/Bearer%20${KEY}`, isKey)).toBe('/[key]')
    expect(maskedPath(`/v1/${KEY.replaceAll('/', '%2f')}`, isKey)).toBe('/v1/[key]')
  })
})
