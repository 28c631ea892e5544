import { describe, expect, it } from '@jest/globals'
import { newCall, targetOf } from '../../../test/support/raw-upstream.js'
import { JsonBody } from '../../core/json-body.js'
import { UpstreamSockets } from '../../upstream/upstream-sockets.js'
import type { CallContext } from '../call-context.js'
import { P2SpeechProvider } from './p2-speech.provider.js'

const FIELDS = { model: 'tts', input: 'Hello.', voice: 'alloy' }
const NOBODY_LISTENS = 1

function speakWith(credentials: string, callersKey: boolean): Promise<unknown> {
  const context: CallContext = {
    call: newCall('/v1/audio/speech'),
    channelId: 'first',
    target: targetOf(NOBODY_LISTENS),
    credentials,
    callersKey,
    upstreamModel: 'tts',
    options: {},
    deadlineAtMs: performance.now() + 20_000,
  }
  const body = JsonBody.parse(Buffer.from(JSON.stringify(FIELDS))).as(FIELDS)
  return new P2SpeechProvider(new UpstreamSockets()).speak({ body, modelClass: 'tts' }, context)
}

describe('A key that is no pair', () => {
  it('is the caller\u2019s to mend when it is theirs', async () => {
    await expect(speakWith('one-part', true)).rejects.toMatchObject({ kind: 'key_malformed' })
  })

  it('is the channel\u2019s fault when it is the channel\u2019s, and another channel may speak', async () => {
    await expect(speakWith('one-part', false)).rejects.toMatchObject({
      kind: 'upstream_failed',
      details: { attempt: { phase: 'unsent', channelFault: true }, retryable: false },
    })
  })

  it('keeps no other from being tried', async () => {
    await expect(speakWith('app|token', false)).rejects.toMatchObject({
      kind: 'upstream_failed',
      details: { attempt: { phase: 'unsent', channelFault: true }, retryable: true },
    })
  })
})
