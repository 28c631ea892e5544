import { afterEach, describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { SPOKEN_ANSWER } from '../../../../test/support/realtime-server-events.js'
import {
  audioOf,
  FRAME_BYTES,
  type RealtimeEvent,
  sha,
  shapeOf,
  spoken,
  SpokenTurnLab,
  TRANSCRIPTION,
  transcriptOf,
  typesOf,
} from '../../../../test/support/realtime-probe.js'
import {
  bytesPerMs,
  decodeALaw,
  decodeBase64,
  decodeMuLaw,
  encodeALaw,
  encodeMuLaw,
  loudness,
  speak,
} from './audio-format.js'

describe('audio that a client appends', () => {
  const lab = new SpokenTurnLab()
  const { append, start } = lab

  afterEach(() => lab.close())

  /** The order with interleaved deltas counted once. */
  function order(events: readonly RealtimeEvent[]): string[] {
    return [...new Set(typesOf(events.filter(({ type }) => !String(type).startsWith(TRANSCRIPTION))))]
  }

  describe('a turn that the client commits', () => {
    const manual = { turn_detection: null, input_audio_transcription: { model: 'gpt-4o-transcribe' } }

    it('is answered with what was heard, to the byte', async () => {
      await start('beta', manual)
      const audio = spoken()
      append(audio)
      lab.probe.send({ type: 'input_audio_buffer.commit' })
      expect(shapeOf(await lab.probe.until('conversation.item.created'))).toEqual([
        'input_audio_buffer.committed',
        'conversation.item.created',
      ])
      lab.probe.send({ type: 'response.create' })
      const events = await lab.probe.until('response.done')
      const heard = `I heard ${audio.length / 48} ms of pcm16 audio with checksum ${sha(audio)}.`
      expect(transcriptOf(events.at(-1) ?? {})).toBe(heard)
      const record = lab.simulator.recordOf(lab.simulator.lastSession)
      expect(record.receivedAudio).toMatchObject({ bytes: audio.length, checksum: sha(audio) })
      const answer = audioOf(events)
      expect(answer.equals(Buffer.concat([...speak(heard, 'pcm16', 1)]))).toBe(true)
      expect(record.sentAudio).toMatchObject({ bytes: answer.length, checksum: sha(answer) })
      expect(record.receivedEvents.map(({ type }) => type)).not.toContain(undefined)
      expect(record.receivedEvents[1]).toEqual({ type: 'input_audio_buffer.append', audioBytes: FRAME_BYTES })
    })

    it('counts what was heard and spoken', async () => {
      await start('beta', { ...manual, input_audio_transcription: null })
      append(spoken())
      lab.probe.send({ type: 'input_audio_buffer.commit' })
      lab.probe.send({ type: 'response.create' })
      const events = await lab.probe.until('response.done')
      const { usage } = (events.at(-1) as { response: { usage: Record<string, number> } }).response
      const audioTokens = Math.ceil(audioOf(events).length / 48 / 50)
      expect(usage).toMatchObject({
        input_token_details: { audio_tokens: Math.ceil(spoken().length / 48 / 100), cached_tokens: 0 },
        output_token_details: { audio_tokens: audioTokens, text_tokens: 10 },
        output_tokens: audioTokens + 10,
      })
      expect(usage['total_tokens']).toBe((usage['input_tokens'] ?? 0) + (usage['output_tokens'] ?? 0))
    })

    it('takes no turn by itself, and refuses to commit nothing', async () => {
      await start('beta', manual)
      append(Buffer.alloc(4704))
      lab.probe.send({ type: 'input_audio_buffer.commit', event_id: 'ev_1' })
      const reason = 'Expected at least 100ms of audio, but buffer only has 98.00ms of audio.'
      expect(await lab.probe.next('error')).toMatchObject({
        error: {
          code: 'input_audio_buffer_commit_empty',
          message: `Error committing input audio buffer: buffer too small. ${reason}`,
          event_id: 'ev_1',
        },
      })
      append(Buffer.alloc(96))
      lab.probe.send({ type: 'input_audio_buffer.commit' })
      await lab.probe.next('input_audio_buffer.committed')
    })

    it('forgets what is cleared', async () => {
      await start('beta', manual)
      append(spoken())
      lab.probe.send({ type: 'input_audio_buffer.clear' })
      await lab.probe.next('input_audio_buffer.cleared')
      lab.probe.send({ type: 'input_audio_buffer.commit' })
      expect(await lab.probe.next('error')).toMatchObject({ error: { code: 'input_audio_buffer_commit_empty' } })
    })

    it.each(['AAA', 'not base64!', 5, null])('refuses %j as audio', async (audio) => {
      await start('beta', manual)
      lab.probe.send({ type: 'input_audio_buffer.append', audio, event_id: 'ev_1' })
      const expected = 'Expected base64-encoded audio bytes (mono PCM16 at 24kHz) but got an invalid value.'
      expect(await lab.probe.next('error')).toMatchObject({
        error: { code: 'invalid_value', param: 'audio', message: `Invalid 'audio'. ${expected}`, event_id: 'ev_1' },
      })
    })

    it('takes 15 MiB in one event and no byte more', async () => {
      await start('beta', manual)
      append(Buffer.alloc(15 * 1024 * 1024), 15 * 1024 * 1024)
      append(Buffer.alloc(15 * 1024 * 1024 + 1), 15 * 1024 * 1024 + 1)
      expect(await lab.probe.next('error')).toMatchObject({ error: { code: 'invalid_value', param: 'audio' } })
      expect(lab.simulator.recordOf(lab.simulator.lastSession).receivedAudio.bytes).toBe(15 * 1024 * 1024)
    })
  })

  describe('a spoken turn that the audio itself starts and ends', () => {
    it('counts speech in received audio, with the padding before and the silence behind it', async () => {
      await start('ga', {})
      append(spoken())
      const started = await lab.probe.next('input_audio_buffer.speech_started')
      const stopped = await lab.probe.next('input_audio_buffer.speech_stopped')
      // 500 ms of silence, then the first syllable's soft beginning, minus 300 ms of padding.
      expect(started['audio_start_ms']).toBeGreaterThanOrEqual(220)
      expect(started['audio_start_ms']).toBeLessThanOrEqual(300)
      // The last syllable falls silent 40 ms before the speech ends; 400 ms later it is over.
      const spokenMs = 60 * 'What is the weather'.length
      expect(stopped['audio_end_ms']).toBeGreaterThanOrEqual(500 + spokenMs - 100 + 400)
      expect(stopped['audio_end_ms']).toBeLessThanOrEqual(500 + spokenMs + 400)
    })

    it('does not depend on how the audio is cut into events', async () => {
      await start('ga', {})
      for (const pieceBytes of [960, 1001, 100_000]) {
        append(spoken(), pieceBytes)
        await lab.probe.next('rate_limits.updated')
        lab.probe.send({ type: 'input_audio_buffer.clear' })
        await lab.probe.next('input_audio_buffer.cleared')
      }
      const { committed } = lab.simulator.recordOf(lab.simulator.lastSession)
      expect(committed).toHaveLength(3)
      expect(new Set(committed.map(({ checksum }) => checksum)).size).toBe(1)
    })

    it.each(['g711_ulaw', 'g711_alaw'] as const)('is heard and answered in %s', async (format) => {
      await start('beta', { input_audio_format: format, output_audio_format: format })
      append(spoken(format), 800)
      const events = await lab.probe.until('response.done')
      const done = events.at(-1) ?? {}
      expect(transcriptOf(done)).toContain(`ms of ${format} audio`)
      const audio = audioOf(events)
      expect(audio.length).toBe(8 * 60 * String(transcriptOf(done)).length)
      expect(new Set(audio).size).toBeGreaterThan(20)
    })

    it('ends after a longer silence if it is configured', async () => {
      await start('beta', { turn_detection: { type: 'server_vad', silence_duration_ms: 700 } })
      append(spoken('pcm16', 400))
      await lab.probe.next('input_audio_buffer.speech_started')
      append(Buffer.alloc(48 * 400))
      const stopped = await lab.probe.next('input_audio_buffer.speech_stopped')
      expect(stopped['audio_end_ms']).toBeGreaterThanOrEqual(400 + 60 * 19 - 100 + 700)
    })

    it('starts no response if it is configured so', async () => {
      await start('beta', { turn_detection: { type: 'server_vad', create_response: false } })
      append(spoken())
      lab.probe.send({ type: 'conversation.item.retrieve', item_id: 'none' })
      const events = await lab.probe.until('error')
      expect(typesOf(events)).not.toContain('response.created')
      expect(typesOf(events)).toContain('conversation.item.created')
    })

    it('interrupts the answer being spoken', async () => {
      await start('ga', {}, 5)
      append(spoken())
      await lab.probe.next('response.output_audio.delta')
      append(spoken())
      const events = await lab.probe.until('input_audio_buffer.committed')
      const done = events.findIndex(({ type }) => type === 'response.done')
      expect(events[done]).toMatchObject({
        response: {
          status: 'cancelled',
          status_details: { type: 'cancelled', reason: 'turn_detected' },
          output: [{ status: 'incomplete' }],
          usage: { output_tokens: expect.any(Number) },
        },
      })
      expect(typesOf(events.slice(0, done))).toContain('input_audio_buffer.speech_started')
      expect(typesOf(events.slice(done))).toContain('input_audio_buffer.speech_stopped')
    })

    it('may be configured not to interrupt, and then reports the response in progress', async () => {
      await start('beta', { turn_detection: { type: 'server_vad', interrupt_response: false } }, 5)
      append(spoken())
      await lab.probe.next('response.audio.delta')
      append(spoken())
      const events = await lab.probe.until('error')
      expect(typesOf(events)).not.toContain('response.done')
      expect(events.at(-1)).toMatchObject({
        error: { code: 'conversation_already_has_active_response', event_id: null },
      })
    })

    it('is found by semantic detection, sooner or later', async () => {
      const detect = (eagerness: string): object => ({
        audio: { input: { turn_detection: { type: 'semantic_vad', eagerness } } },
      })
      await start('ga', detect('high'))
      append(spoken())
      await lab.probe.next('response.done')
      lab.probe.send({ type: 'session.update', session: { type: 'realtime', ...detect('low') } })
      await lab.probe.next('session.updated')
      append(Buffer.concat([spoken(), Buffer.alloc(48 * 1000)]))
      lab.probe.send({ type: 'input_audio_buffer.commit' })
      expect(typesOf(await lab.probe.until('input_audio_buffer.committed'))).not.toContain(
        'input_audio_buffer.speech_stopped',
      )
    })

    it('stays silent for silence', async () => {
      await start('ga', {})
      append(Buffer.alloc(96_000))
      lab.probe.send({ type: 'input_audio_buffer.clear' })
      expect(typesOf(await lab.probe.until('input_audio_buffer.cleared'))).toEqual(['input_audio_buffer.cleared'])
    })

    it('has the order of the GA dialect', async () => {
      await start('ga', {})
      append(spoken())
      const events = await lab.probe.until('rate_limits.updated')
      const user = events.slice(0, 5)
      expect(typesOf(user)).toEqual([
        'input_audio_buffer.speech_started',
        'input_audio_buffer.speech_stopped',
        'input_audio_buffer.committed',
        'conversation.item.added',
        'conversation.item.done',
      ])
      expect(order(events.slice(5))).toEqual(SPOKEN_ANSWER.ga)
      const itemId = user[0]?.['item_id']
      expect(user.slice(1, 3).map((event) => event['item_id'])).toEqual([itemId, itemId])
      expect(user[3]).toMatchObject({
        previous_item_id: null,
        item: { id: itemId, type: 'message', role: 'user', content: [{ type: 'input_audio', transcript: null }] },
      })
      expect(user[3]?.['item']).not.toHaveProperty('object')
      expect(events.every((event) => !String(event['type']).endsWith('.delta') || 'obfuscation' in event)).toBe(true)
    })

    it('has the order and the item form of the beta dialect', async () => {
      await start('beta', {})
      append(spoken())
      const events = await lab.probe.until('rate_limits.updated')
      expect(typesOf(events.slice(0, 4))).toEqual([
        'input_audio_buffer.speech_started',
        'input_audio_buffer.speech_stopped',
        'input_audio_buffer.committed',
        'conversation.item.created',
      ])
      expect(order(events.slice(4))).toEqual(SPOKEN_ANSWER.beta)
      expect(events[3]?.['item']).toMatchObject({ object: 'realtime.item' })
      expect(events.some((event) => 'obfuscation' in event)).toBe(false)
      expect(events.find(({ type }) => type === 'response.done')).toMatchObject({
        response: {
          status: 'completed',
          modalities: ['audio', 'text'],
          temperature: 0.8,
          output: [{ object: 'realtime.item', content: [{ type: 'audio', transcript: expect.any(String) }] }],
        },
      })
    })
  })

  describe('the transcription of what was said', () => {
    const withModel = (model: string, more: object = {}): object => ({
      audio: { input: { turn_detection: null, transcription: { model, ...more } } },
    })

    it('comes in deltas and ends with its tokens', async () => {
      await start('ga', { ...withModel('gpt-4o-transcribe'), include: ['item.input_audio_transcription.logprobs'] })
      const audio = spoken()
      append(audio)
      lab.probe.send({ type: 'input_audio_buffer.commit' })
      const events = await lab.probe.until(`${TRANSCRIPTION}.completed`)
      const transcript = `The audio has checksum ${sha(audio)}. It lasts ${(audio.length / 48_000).toFixed(2)} seconds.`
      const deltas = events.filter(({ type }) => type === `${TRANSCRIPTION}.delta`)
      expect(deltas.map(({ delta }) => delta).join('')).toBe(transcript)
      const completed = events.at(-1) ?? {}
      expect(completed).toMatchObject({
        transcript,
        usage: {
          type: 'tokens',
          input_token_details: { text_tokens: 0, audio_tokens: Math.ceil(audio.length / 4800) },
        },
        logprobs: expect.any(Array),
      })
      lab.probe.send({ type: 'conversation.item.retrieve', item_id: completed['item_id'] })
      expect(await lab.probe.next('conversation.item.retrieved')).toMatchObject({ item: { content: [{ transcript }] } })
    })

    it('comes at once and with its duration from Whisper', async () => {
      await start('ga', withModel('whisper-1'))
      append(spoken())
      lab.probe.send({ type: 'input_audio_buffer.commit' })
      const events = await lab.probe.until(`${TRANSCRIPTION}.completed`)
      expect(typesOf(events)).not.toContain(`${TRANSCRIPTION}.delta`)
      expect(events.at(-1)).toMatchObject({ usage: { type: 'duration', seconds: 3 } })
    })

    it('may fail', async () => {
      await start('ga', withModel('whisper-1', { prompt: '#fail' }))
      append(spoken())
      lab.probe.send({ type: 'input_audio_buffer.commit' })
      expect(await lab.probe.next(`${TRANSCRIPTION}.failed`)).toMatchObject({ error: { code: 'audio_unintelligible' } })
    })

    it('runs beside the answer when speech makes the turn', async () => {
      await start('ga', { audio: { input: { transcription: { model: 'gpt-4o-transcribe' } } } })
      append(spoken())
      const events = typesOf(await lab.probe.until('rate_limits.updated'))
      const first = events.indexOf(`${TRANSCRIPTION}.delta`)
      expect(first).toBeGreaterThan(events.indexOf('response.created'))
      expect(events.indexOf(`${TRANSCRIPTION}.completed`)).toBeLessThan(events.indexOf('response.output_audio.done'))
    })
  })
})

describe('g711', () => {
  const LAWS = [
    { name: 'mu-law', encode: encodeMuLaw, decode: decodeMuLaw },
    { name: 'A-law', encode: encodeALaw, decode: decodeALaw },
  ]

  describe.each(LAWS)('G.711 $name', ({ encode, decode }) => {
    it('keeps every byte through a decoder and an encoder', () => {
      for (let byte = 0; byte < 256; byte += 1) expect(decode(encode(decode(byte)))).toBe(decode(byte))
    })

    it('stays within a sixteenth of each sample, and a small step near silence', () => {
      fc.assert(
        fc.property(fc.integer({ min: -32_768, max: 32_767 }), (sample) => {
          const error = Math.abs(decode(encode(sample)) - sample)
          expect(error).toBeLessThanOrEqual(Math.max(16, Math.abs(sample) / 16))
        }),
      )
    })
  })

  it('knows the silence of both laws as the standard gives it', () => {
    expect([encodeMuLaw(0), encodeALaw(0)]).toEqual([0xff, 0xd5])
  })

  it('speaks equally long and loud in all formats', () => {
    const spoken = (['pcm16', 'g711_ulaw', 'g711_alaw'] as const).map((format) => {
      const audio = Buffer.concat([...speak('Hello from the gateway', format, 1)])
      return { ms: audio.length / bytesPerMs(format), loudness: loudness(audio, format) }
    })
    expect(spoken.map(({ ms }) => ms)).toEqual([1320, 1320, 1320])
    for (const { loudness: level } of spoken) expect(level).toBeGreaterThan(0.05)
  })

  describe('base64 of audio', () => {
    it('is decoded exactly', () => {
      fc.assert(
        fc.property(fc.uint8Array(), (bytes) => {
          expect(decodeBase64(Buffer.from(bytes).toString('base64'))?.equals(bytes)).toBe(true)
        }),
      )
    })

    it.each(['AAA', 'AA==AA==', 'AA A', 'A-_A', 'AB==', '####', 'AAAA\n'])('is refused: %j', (text) => {
      expect(decodeBase64(text)).toBeUndefined()
    })
  })
})
