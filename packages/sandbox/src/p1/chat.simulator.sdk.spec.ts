import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import OpenAI from 'openai'
import type { RunnableToolFunctionWithParse } from 'openai/lib/RunnableFunction'
import { ChatSimulatorLab, hello, weather } from '../../test/chat-simulator-lab.js'

const lab = new ChatSimulatorLab()

beforeAll(() => lab.start())
afterEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

describe('the official SDK against the P1 chat simulator', () => {
  it('gets a complete answer with usage and a request id', async () => {
    const completion = await lab.client.chat.completions.create({ model: 'gpt-4o-mini', messages: hello })
    expect(completion.choices[0]?.message.content).toBe('You said: hello there')
    expect(completion.model).toBe('gpt-4o-mini-2024-07-18')
    expect(completion.usage?.total_tokens).toBe(
      (completion.usage?.prompt_tokens ?? 0) + (completion.usage?.completion_tokens ?? 0),
    )
    expect(completion._request_id).toMatch(/^req_[0-9a-f]{32}$/)
  })

  it('assembles a streamed answer with its helper', async () => {
    const stream = lab.client.chat.completions.stream({
      model: 'gpt-4o-mini',
      messages: hello,
      n: 2,
      stream_options: { include_usage: true },
    })
    const final = await stream.finalChatCompletion()
    expect(final.choices.map((choice) => choice.message.content)).toEqual(Array(2).fill('You said: hello there'))
    expect(final.usage?.completion_tokens).toBe(8)
  })

  it.each([true, false])('runs tools to the end, streaming %p', async (stream) => {
    const asked: string[] = []
    const tool: RunnableToolFunctionWithParse<{ city: string }> = {
      type: 'function',
      function: {
        ...weather.function,
        description: 'Weather by city',
        parse: (text) => JSON.parse(text) as { city: string },
        function: ({ city }) => {
          asked.push(city)
          return 'sunny, 21 degrees'
        },
      },
    }
    const messages = [{ role: 'user' as const, content: 'Weather?' }]
    const runner = stream
      ? lab.client.chat.completions.runTools({ model: 'gpt-4o-mini', messages, tools: [tool], stream: true })
      : lab.client.chat.completions.runTools({ model: 'gpt-4o-mini', messages, tools: [tool] })
    expect(await runner.finalContent()).toBe('The tools answered: sunny, 21 degrees')
    expect(asked).toEqual(['Paris'])
  })

  it('hears audio, answers with audio, and accepts a reference to it', async () => {
    const data = Buffer.concat([Buffer.from('RIFF'), Buffer.alloc(998)]).toString('base64')
    const question = {
      role: 'user' as const,
      content: [{ type: 'input_audio' as const, input_audio: { data, format: 'wav' as const } }],
    }
    const options = {
      model: 'gpt-audio-1.5',
      modalities: ['text' as const, 'audio' as const],
      audio: { voice: 'alloy' as const, format: 'wav' as const },
    }
    const first = await lab.client.chat.completions.create({ ...options, messages: [question] })
    const audio = first.choices[0]?.message.audio
    expect(audio?.transcript).toBe('You said nothing. I heard wav audio of 1002 bytes.')
    expect(
      Buffer.from(audio?.data ?? '', 'base64')
        .subarray(0, 4)
        .toString(),
    ).toBe('RIFF')
    expect((audio?.expires_at ?? 0) - first.created).toBeGreaterThanOrEqual(3600)
    const usage = first.usage
    expect(usage?.completion_tokens_details).toHaveProperty('text_tokens', 10)
    const id = audio?.id ?? ''
    const messages: OpenAI.ChatCompletionMessageParam[] = [
      question,
      { role: 'assistant' as const, audio: { id } },
      ...hello,
    ]
    await expect(lab.client.chat.completions.create({ ...options, messages })).resolves.toBeDefined()
    const wrong: OpenAI.ChatCompletionMessageParam[] = [
      question,
      { role: 'assistant' as const, audio: { id: 'audio_other' } },
      ...hello,
    ]
    await expect(lab.client.chat.completions.create({ ...options, messages: wrong })).rejects.toMatchObject({
      status: 400,
    })
  })

  it.each([
    [{ model: 'missing-model' }, OpenAI.NotFoundError, { code: 'model_not_found', param: null }],
    [{ temperature: 3 }, OpenAI.BadRequestError, { code: 'decimal_above_max_value', param: 'temperature' }],
    [{ messages: [{ role: 'user' as const, content: '#403' }] }, OpenAI.PermissionDeniedError, {}],
    [{ messages: [{ role: 'user' as const, content: '#422' }] }, OpenAI.UnprocessableEntityError, {}],
    [
      { messages: [{ role: 'user' as const, content: '#429' }] },
      OpenAI.RateLimitError,
      { code: 'rate_limit_exceeded' },
    ],
    [{ messages: [{ role: 'user' as const, content: '#500' }] }, OpenAI.InternalServerError, { type: 'server_error' }],
  ])('raises the right class for %j', async (change, errorClass, properties) => {
    const failing = lab.client.chat.completions.create({ model: 'gpt-4o-mini', messages: hello, ...change })
    const error: unknown = await failing.catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(errorClass)
    expect(error).toMatchObject({ ...properties, requestID: expect.stringMatching(/^req_/) as unknown })
  })

  it('raises AuthenticationError with a masked key for a wrong key', async () => {
    const stranger = new OpenAI({ apiKey: 'sk-abcdefyz', baseURL: `${lab.simulator.url}/v1`, maxRetries: 0 })
    await expect(stranger.models.list()).rejects.toMatchObject({
      constructor: OpenAI.AuthenticationError,
      code: 'invalid_api_key',
      error: { message: expect.stringMatching(/^Incorrect API key provided: sk-ab\*\*\*yz\. You can find/) as unknown },
    })
  })

  it('throws from its iterator on an error frame', async () => {
    const stream = await lab.client.chat.completions.create({
      model: 'gpt-4o-mini',
      messages: [{ role: 'user', content: '#errorframe a b c' }],
      stream: true,
    })
    const read = async (): Promise<void> => {
      for await (const chunk of stream) expect(chunk.choices).toHaveLength(1)
    }
    await expect(read()).rejects.toBeInstanceOf(OpenAI.APIError)
  })

  it('lists models', async () => {
    const ids = (await lab.client.models.list()).data.map((model) => model.id)
    expect(ids).toContain('gpt-4o-mini')
    expect((await lab.client.models.retrieve('tts-1')).id).toBe('tts-1')
  })
})
