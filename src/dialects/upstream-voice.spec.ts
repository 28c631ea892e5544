import { describe, expect, it } from '@jest/globals'
import { upstreamVoice } from './upstream-voice.js'

const STANDARD = { alloy: 'Provider_Alloy', echo: 'Provider_Echo' }

describe('The name of a voice at an upstream', () => {
  it("is the channel's, then the provider's", () => {
    const ofChannel = { alloy: 'Channel_Alloy', narrator: 'Channel_Narrator' }
    expect(upstreamVoice('alloy', STANDARD, ofChannel)).toBe('Channel_Alloy')
    expect(upstreamVoice('narrator', STANDARD, ofChannel)).toBe('Channel_Narrator')
    expect(upstreamVoice('echo', STANDARD, ofChannel)).toBe('Provider_Echo')
    expect(upstreamVoice('alloy', STANDARD)).toBe('Provider_Alloy')
  })

  it.each(['Calm_Woman', 'Alloy', 'constructor', '__proto__', 'toString'])('is %s where no table names it', (name) => {
    expect(upstreamVoice(name, STANDARD, {})).toBe(name)
  })

  it('is the id as it stands, even one that a table names', () => {
    expect(upstreamVoice({ id: 'alloy' }, STANDARD, STANDARD)).toBe('alloy')
  })
})
