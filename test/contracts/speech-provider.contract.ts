import { describe, expect, it } from '@jest/globals'
import { describeAudio } from './speech-audio.contract.js'
import type { SpeechSetup, Witness } from './speech-lab.js'
import { describeRefusals } from './speech-refusals.contract.js'
import { describeStreams } from './speech-stream.contract.js'

/**
 * What speech is through this gateway, whoever speaks. Every provider of speech passes all of it, through a whole gateway
 * and over real sockets on both sides; `setup` says only what the specification lets differ.
 */
export function describeSpeechProvider(name: string, setup: SpeechSetup): void {
  describe(`speech by ${name}`, () => {
    const witness: Witness = []
    describe('when all goes well', () => {
      describeAudio(setup, witness)
    })
    describe('when it is refused', () => {
      describeRefusals(setup, witness)
    })
    describe('between its first byte and its last', () => {
      describeStreams(setup, witness)
    })

    // The last one: it searches what the others have heard, and what their gateways had logged when they were closed.
    it('shows the credentials of the channel in no answer, no header and no line of the log', () => {
      const told = witness.join('\n')
      for (const mark of ['"channel":"first"', '"attempts":2', '"kind":"upstream_failed"', '"status":499'])
        expect(told).toContain(mark)
      for (const secret of setup.credentials.split('|')) expect(told).not.toContain(secret)
    })
  })
}
