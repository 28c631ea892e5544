import { describe, expect, it } from '@jest/globals'
import { messagesToolId } from './tool-ids.js'

describe('The id of a call of a tool, for a messages upstream', () => {
  it.each(['call_abc', 'toolu_01', 'a', 'x'.repeat(64)])('stays as it is where the upstream takes it: %s', (id) => {
    expect(messagesToolId(id)).toBe(id)
  })

  it.each(['', 'a b', 'functions.get:0', 'x'.repeat(65), 'é'])(
    'is one that the upstream takes, always the same: %s',
    (id) => {
      const made = messagesToolId(id)
      expect(made).toMatch(/^t_[a-z2-7]{52}$/)
      expect(messagesToolId(id)).toBe(made)
      expect(messagesToolId(`${id}.`)).not.toBe(made)
    },
  )
})
