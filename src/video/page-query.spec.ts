import { describe, expect, it } from '@jest/globals'
import { readPage } from './video-query.js'

describe('The page of a list', () => {
  it.each([
    [{}, { offset: 0, limit: 30 }],
    [
      { pageNum: '1', pageSize: '1' },
      { offset: 0, limit: 1 },
    ],
    [{ pageNum: '3' }, { offset: 60, limit: 30 }],
    [
      { pageNum: '1000', pageSize: '500', other: 'x' },
      { offset: 499_500, limit: 500 },
    ],
    [{ pageNum: '02' }, { offset: 30, limit: 30 }],
  ])('for %j is %j', (query, page) => {
    expect(readPage(query)).toEqual(page)
  })

  it.each(['0', '-1', '1001', '99999', '1.5', '1e2', ' 1', '', 'x', '0x1', ['1', '2']])(
    'is refused with pageNum %j',
    (pageNum) => {
      expect(() => readPage({ pageNum })).toThrow(
        expect.objectContaining({
          kind: 'invalid_request',
          message: "Invalid 'pageNum': expected a whole number from 1 to 1000.",
        }),
      )
    },
  )

  it.each(['0', '501', '-1', '1.5', '', 'x'])('is refused with pageSize %j', (pageSize) => {
    expect(() => readPage({ pageSize })).toThrow(/'pageSize': expected a whole number from 1 to 500/)
  })
})
