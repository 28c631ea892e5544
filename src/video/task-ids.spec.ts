import { describe, expect, it } from '@jest/globals'
import { assertTaskId, readIdempotencyKey } from './task-ids.js'

describe('The id in a path', () => {
  it.each(['831200000000000001', 'task_aB3', 'order-77', 'a b', '...', 'ä', '€'.repeat(256)])('may be %s', (id) => {
    expect(() => {
      assertTaskId(id)
    }).not.toThrow()
  })

  it.each(['', '.', '..', '../x', 'a/b', 'a\\b', 'a\nb', 'a\0', '\u0085', 'x'.repeat(257)])(
    'is nobody’s as %j, which would lead elsewhere upstream',
    (id) => {
      expect(() => {
        assertTaskId(id)
      }).toThrow(expect.objectContaining({ kind: 'not_found' }))
    },
  )
})

describe('An Idempotency-Key', () => {
  it.each([undefined, 'x', ' a ~', 'k'.repeat(255)])('may be %j', (key) => {
    expect(readIdempotencyKey(key)).toBe(key)
  })

  it.each(['', 'k'.repeat(256), 'a\tb', 'é', 'a\u007f'])('is refused as %j', (key) => {
    expect(() => readIdempotencyKey(key)).toThrow(
      expect.objectContaining({
        kind: 'invalid_request',
        details: expect.objectContaining({ param: 'Idempotency-Key' }),
      }),
    )
  })
})
