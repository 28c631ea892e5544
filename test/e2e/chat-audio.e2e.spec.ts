import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import type { ChatCompletionCreateParamsNonStreaming } from 'openai/resources/chat/completions'
import { CHAT_PATH } from '../support/chat-bodies.js'
import { OPENAI_CLIENTS } from '../support/openai-clients.js'
import { startP1Gateway, type P1Gateway } from '../support/p1-gateway.js'
import { eventsOf, sendRaw } from '../support/raw-http.js'

type Spoken = Pick<ChatCompletionCreateParamsNonStreaming, 'model' | 'modalities' | 'audio' | 'messages'>

const spoken = (text: string, format: 'wav' | 'mp3' | 'pcm16'): Spoken => ({
  model: 'gpt-audio-1.5',
  modalities: ['text', 'audio'],
  audio: { voice: 'alloy', format },
  messages: [{ role: 'user', content: text }],
})

/** The audio part of a chunk, which the old client's types do not know. */
interface SpokenDelta {
  readonly audio?: { readonly data?: string; readonly transcript?: string; readonly expires_at?: number }
}

const WAV = Buffer.concat([Buffer.from('RIFF\xff\xff\xff\xffWAVEfmt ', 'latin1'), Buffer.alloc(4096, 7)])

let lab: P1Gateway

beforeAll(async () => {
  lab = await startP1Gateway()
})
beforeEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

describe.each(OPENAI_CLIENTS)('audio in chat with %s', (_name, makeClient) => {
  it('is spoken as one complete file with transcript, expiry and detailed usage', async () => {
    const data = await makeClient(lab.gateway).chat.completions.create(spoken('Hello', 'wav'))
    const message = data.choices[0]?.message
    expect(message?.content).toBeNull()
    expect(message?.audio).toMatchObject({ transcript: 'You said: Hello', expires_at: expect.any(Number) })
    const bytes = Buffer.from(message?.audio?.data ?? '', 'base64')
    expect(bytes.toString('latin1', 0, 4)).toBe('RIFF')
    expect(data.usage?.prompt_tokens_details).toEqual({
      cached_tokens: 0,
      audio_tokens: 0,
      text_tokens: 9,
      image_tokens: 0,
    })
    expect(data.usage?.completion_tokens_details).toMatchObject({ text_tokens: 3, reasoning_tokens: 0 })
  })

  it('is heard by the model', async () => {
    const content = [
      { type: 'text' as const, text: 'What is said?' },
      { type: 'input_audio' as const, input_audio: { data: WAV.toString('base64'), format: 'wav' as const } },
    ]
    const data = await makeClient(lab.gateway).chat.completions.create({
      model: 'gpt-audio-1.5',
      messages: [{ role: 'user', content }],
    })
    expect(data.choices[0]?.message.content).toContain(`I heard wav audio of ${WAV.length} bytes.`)
    expect(data.usage?.prompt_tokens_details?.audio_tokens).toBeGreaterThan(0)
  })

  it('can be referred to in the next turn', async () => {
    const client = makeClient(lab.gateway)
    const first = await client.chat.completions.create(spoken('Hello', 'mp3'))
    const { messages, ...rest } = spoken('Hello', 'mp3')
    const audio = { id: first.choices[0]?.message.audio?.id ?? '' }
    const turn = [...messages, { role: 'assistant' as const, audio }, { role: 'user' as const, content: 'Again' }]
    const second = await client.chat.completions.create({ ...rest, messages: turn })
    expect(second.choices[0]?.message.audio?.transcript).toBe('You said: Again')
  })

  it('is streamed in pieces that add up to the whole', async () => {
    const body = { ...spoken('Hello', 'pcm16'), stream: true as const, stream_options: { include_usage: true } }
    const audio: NonNullable<SpokenDelta['audio']>[] = []
    let usage: unknown
    for await (const chunk of await makeClient(lab.gateway).chat.completions.create(body)) {
      // Filler chunks of audio models carry no choices at all.
      const [choice] = (chunk.choices as typeof chunk.choices | undefined) ?? []
      const delta = choice?.delta as SpokenDelta | undefined
      if (delta?.audio !== undefined) audio.push(delta.audio)
      usage = chunk.usage ?? usage
    }
    const pcm = Buffer.concat(audio.map(({ data }) => Buffer.from(data ?? '', 'base64')))
    expect(audio.map(({ transcript }) => transcript ?? '').join('')).toBe('You said: Hello')
    expect(audio.at(-1)).toHaveProperty('expires_at')
    expect(usage).toMatchObject({ completion_tokens_details: { text_tokens: 3 } })
    const whole = await makeClient(lab.gateway).chat.completions.create(spoken('Hello', 'pcm16'))
    expect(pcm.equals(Buffer.from(whole.choices[0]?.message.audio?.data ?? '', 'base64'))).toBe(true)
  })
})

describe('spoken chat on the wire', () => {
  it('streams in the recorded order, without usage for a caller who did not ask', async () => {
    const answer = await sendRaw(lab.gateway.url, {
      path: CHAT_PATH,
      body: JSON.stringify({ ...spoken('Hello', 'pcm16'), stream: true }),
    })
    const events = eventsOf(answer.text)
    expect(events.at(-1)).toBe('[DONE]')
    expect(events.at(-2)).toContain('"expires_at"')
    expect(answer.text).not.toContain('"usage"')
    const line = await lab.gateway.logLine(String(answer.headers['x-request-id']))
    expect(line['usage']).toMatchObject({ units: { completion_tokens_details: { text_tokens: 3 } }, estimated: false })
  })

  it('records the usage of a long spoken answer too', async () => {
    const answer = await sendRaw(lab.gateway.url, {
      path: CHAT_PATH,
      body: JSON.stringify(spoken('#words=200', 'wav')),
    })
    expect(answer.body.length).toBeGreaterThan(1024 * 1024)
    const line = await lab.gateway.logLine(String(answer.headers['x-request-id']))
    expect(line['usage']).toMatchObject({ units: { completion_tokens_details: { text_tokens: 200 } } })
  })
})
