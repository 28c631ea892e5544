import { afterEach, describe, expect, it } from '@jest/globals'
import type { WebSocket } from 'ws'

import { MAXIMUM_MESSAGE_BYTES, P2SessionLab } from '../../../test/support/p2-session-lab.js'
import { acknowledgement, audio, errorFrame, lastAudio } from '../../../test/support/p2-upstream.js'

const lab = new P2SessionLab()
const { begin, expectNothingLeft } = lab

afterEach(() => lab.reset())

const CHANNEL_FAULT = { details: { attempt: { phase: 'answered', channelFault: true } } }

describe('A synthesis fails', () => {
  it.each([1000, 1001, 1011])('when the upstream closes with %d before the last frame', async (code) => {
    const begun = await begin((socket) => {
      socket.send(audio('ab'))
      socket.close(code)
    })
    await begun.ended()
    expect(begun.sink.text).toBe('ab')
    expect(begun.sink.ending).toMatchObject({ kind: 'upstream_failed', ...CHANNEL_FAULT })
    await expectNothingLeft(begun)
  })

  it.each<[string, (socket: WebSocket) => void]>([
    [
      'the connection breaks',
      (socket) => {
        socket.terminate()
      },
    ],
    [
      'a text message comes',
      (socket) => {
        socket.send('{}')
      },
    ],
    [
      'a frame is malformed',
      (socket) => {
        socket.send(Buffer.from('11', 'hex'))
      },
    ],
    [
      'a message is too long',
      (socket) => {
        socket.send(Buffer.alloc(MAXIMUM_MESSAGE_BYTES + 1))
      },
    ],
    [
      'the last frame comes without any audio before or in it',
      (socket) => {
        socket.send(lastAudio())
      },
    ],
  ])('when %s', async (_name, answer) => {
    const begun = await begin(answer)
    await begun.ended()
    expect(begun.sink.ending).toMatchObject({ kind: 'upstream_failed', ...CHANNEL_FAULT })
    await expectNothingLeft(begun)
  })

  it('when its last frame ends within a sample', async () => {
    const begun = await begin([audio('ab'), lastAudio('c')], { sampleBytes: 2 })
    await begun.ended()
    expect([begun.sink.failure, begun.sink.text]).toEqual(['upstream_failed', 'abc'])
    expect(begun.sink.ending).toMatchObject(CHANNEL_FAULT)
    await expectNothingLeft(begun)
  })

  it('with what an error frame means, and hears nothing after it', async () => {
    const begun = await begin([audio('ab'), errorFrame(3050, 'no such voice'), lastAudio('cd')])
    await begun.ended()
    expect(begun.sink.ending).toMatchObject({ kind: 'conflict', message: '3050 no such voice' })
    expect(begun.sink.text).toBe('ab')
    await expectNothingLeft(begun)
  })
})

describe('A silent upstream', () => {
  const SENT = { details: { attempt: { phase: 'sent', channelFault: true }, retryable: false } }

  it.each<[string, Buffer[]]>([
    ['that says nothing', []],
    ['that acknowledges and says nothing more', [acknowledgement()]],
  ])('%s is given up after the first-byte time', async (_name, messages) => {
    const begun = await begin(messages, { timeouts: { firstByteMs: 60 } })
    await begun.ended()
    expect(begun.sink.ending).toMatchObject({ kind: 'upstream_timeout', ...SENT })
    expect(begun.sink.ending).toMatchObject({ message: 'The upstream did not answer in time.' })
    await expectNothingLeft(begun)
  })

  it('that falls silent is given up after the idle time', async () => {
    const begun = await begin([acknowledgement(), audio('ab')], { timeouts: { idleMs: 60 } })
    await begun.ended()
    expect(begun.sink.ending).toMatchObject({ kind: 'upstream_timeout', ...SENT })
    expect(begun.sink.ending).toMatchObject({ message: 'The upstream stopped sending in the middle of its answer.' })
    await expectNothingLeft(begun)
  })

  it('that speaks on and on is given up at the end of the total time', async () => {
    const begun = await begin(
      (socket) => {
        const speak = (): void => {
          socket.send(audio('ab'), (error) => {
            if (error == null) setImmediate(speak)
          })
        }
        speak()
      },
      { totalMs: 100 },
    )
    await begun.ended()
    expect(begun.sink.ending).toMatchObject({ kind: 'upstream_timeout' })
    await expectNothingLeft(begun)
  })
})
