import { describe, expect, it } from '@jest/globals'
import { keyCredentials } from '../../config/channel-schema.js'
import { TOY_MANIFEST } from './toy-chat.js'

describe('The toy upstream', () => {
  it('offers chat with a key of the channel', () => {
    expect(TOY_MANIFEST.capabilities).toHaveProperty('chat')
    expect(TOY_MANIFEST.credentialsSchema).toBe(keyCredentials)
  })
})
