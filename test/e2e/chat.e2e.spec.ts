import { describe, expect, it } from '@jest/globals'
import type { ChatCompletionCreateParamsNonStreaming } from 'openai/resources/chat/completions'
import { ask, expectRefused } from '../support/failing-calls.js'
import {
  chat,
  CHAT_PATH,
  chatText,
  errorOf,
  eventsOf,
  openRaw,
  sendRaw,
  SPEECH_PATH,
  speechText,
  TEST_KEY,
} from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import { type P1Gateway, startP1Gateway, UPSTREAM_KEY, withP1Gateway } from '../support/provider-gateways.js'
import { chatHelpers, OPENAI_CLIENTS } from '../support/sdk-clients.js'

describe('chat', () => {
  let lab: P1Gateway
  shareLab(async () => (lab = await startP1Gateway({ simulator: { acceptUnknownFields: true } })))

  describe.each(OPENAI_CLIENTS)('chat completions with %s', (_name, makeClient) => {
    it('answers as the upstream would, with usage and request id', async () => {
      const { data, request_id, response } = await makeClient(lab.gateway)
        .chat.completions.create(chat('Hello'))
        .withResponse()
      expect(data.choices[0]?.message.content).toBe('You said: Hello')
      expect(data.choices[0]?.finish_reason).toBe('stop')
      expect(data.usage?.total_tokens).toBeGreaterThan(0)
      expect(data).toHaveProperty('_request_id', request_id)
      expect(request_id).toMatch(/^req_[0-9a-f]{32}$/)
      expect(response.headers.get('content-type')).toBe('application/json')
      expect(lab.simulator.violations).toEqual([])
    })

    it('gives every one of n choices', async () => {
      const data = await makeClient(lab.gateway).chat.completions.create({ ...chat('Hello'), n: 3 })
      expect(data.choices.map(({ index }) => index)).toEqual([0, 1, 2])
    })
  })

  describe('what travels through a chat completion', () => {
    const STRANGE = [
      '{ "future_field" : {"b":1.0,"a":1e3,"big":12345678901234567890} ,',
      '\t"model":"gpt-4o-mini",\r\n  "temperature":1.0, "top_p":1E-1,',
      '"messages":[{"role":"user","content":"caf\\u00e9 \\ud83d\\ude00 \\/ é","x":[1.50]}],"max_tokens":1e3, "n" :1 }\n',
    ].join('\n')

    it('sends the bytes of the caller to the upstream exactly as they were written', async () => {
      const answer = await sendRaw(lab.gateway.url, { path: CHAT_PATH, body: STRANGE })
      expect(answer.status).toBe(200)
      expect(lab.simulator.lastRequest?.body.toString()).toBe(STRANGE)
    })

    it('replaces only the bytes of the model where a channel maps it', async () => {
      const options = {
        simulator: { acceptUnknownFields: true },
        channel: { modelMap: { 'gpt-4o-mini': 'gpt-4.1"x' } },
      }
      await withP1Gateway(options, async ({ gateway, simulator }) => {
        await sendRaw(gateway.url, { path: CHAT_PATH, body: STRANGE })
        expect(simulator.lastRequest?.body.toString()).toBe(STRANGE.replace('"gpt-4o-mini"', '"gpt-4.1\\"x"'))
      })
    })

    it("gives the upstream's answer back byte for byte", async () => {
      const body =
        '{\n  "id": "chatcmpl-1",\n  "usage": {"prompt_tokens": 1.0e0},\n  "n": 12345678901234567890, "t":"\\u00e9"\n}\n'
      lab.simulator.queueFault({ kind: 'status', status: 200, headers: { 'content-type': 'application/json' }, body })
      const answer = await ask(lab.gateway)
      expect(answer.text).toBe(body)
      expect(answer.headers['content-length']).toBe(String(Buffer.byteLength(body)))
    })

    it('gives an answer of several megabytes back byte for byte', async () => {
      const body = JSON.stringify(
        { id: 'x', filler: 'ä'.repeat(2_000_000), usage: { prompt_tokens: 7, total_tokens: 7 } },
        null,
        2,
      )
      lab.simulator.queueFault({ kind: 'status', status: 200, headers: { 'content-type': 'application/json' }, body })
      const answer = await ask(lab.gateway)
      expect(answer.complete).toBe(true)
      expect(answer.body.equals(Buffer.from(body))).toBe(true)
    })

    it('keeps the headers of the caller from the upstream', async () => {
      const headers = {
        cookie: 'session=1',
        'x-stainless-lang': 'js',
        'x-forwarded-for': '10.0.0.1',
        'x-custom': 'canary',
        'openai-organization': 'org-caller',
        'user-agent': 'caller/1',
        'x-api-key': 'caller-key',
      }
      await sendRaw(lab.gateway.url, { path: CHAT_PATH, body: chatText('Hello'), headers })
      const sent = lab.simulator.lastRequest?.headers ?? {}
      expect(Object.keys(sent).sort()).toEqual([
        'accept',
        'accept-encoding',
        'authorization',
        'connection',
        'content-length',
        'content-type',
        'host',
      ])
      expect(sent['authorization']).toBe(`Bearer ${UPSTREAM_KEY}`)
    })

    it("keeps the upstream's own headers from the caller and passes on its limits and times", async () => {
      const { headers } = await ask(lab.gateway)
      for (const hidden of [
        'openai-organization',
        'openai-project',
        'set-cookie',
        'server',
        'cf-ray',
        'strict-transport-security',
      ]) {
        expect(headers).not.toHaveProperty(hidden)
      }
      expect(headers).not.toHaveProperty('x-powered-by')
      expect(headers['x-ratelimit-remaining-requests']).toBe('9999')
      expect(headers['x-ratelimit-reset-tokens']).toBe('2ms')
      expect(headers['openai-processing-ms']).toMatch(/^\d+$/)
      expect(headers['openai-version']).toBe('2020-10-01')
    })
  })

  describe('the request id', () => {
    const idAfter = async (id: string | readonly string[]): Promise<string | string[] | undefined> => {
      const request = { path: CHAT_PATH, body: chatText('Hello'), headers: { 'x-request-id': id } }
      return (await sendRaw(lab.gateway.url, request)).headers['x-request-id']
    }

    it.each(['a', 'my-trace/1:2', 'x'.repeat(128)])('of the caller is kept when it is printable: %s', async (id) => {
      expect(await idAfter(id)).toBe(id)
      expect(await lab.gateway.logLine(id)).toMatchObject({ status: 200, channel: 'first', model: 'gpt-4o-mini' })
    })

    it.each(['x'.repeat(129), 'two words', 'caf\u00e9', '', ['a', 'b']])(
      'of the caller is replaced when it is not: %s',
      async (id) => {
        expect(await idAfter(id)).toMatch(/^req_[0-9a-f]{32}$/)
      },
    )

    it('never is the one of the upstream', async () => {
      const answer = await ask(lab.gateway)
      const line = await lab.gateway.logLine(String(answer.headers['x-request-id']))
      expect(line['upstreamRequestId']).toMatch(/^req_/)
      expect(line['upstreamRequestId']).not.toBe(answer.headers['x-request-id'])
    })
  })
  const STREAM = { stream: true } as const
  const EVENT_STREAM = { 'content-type': 'text/event-stream; charset=utf-8' }

  const sentOptions = (): unknown =>
    (lab.simulator.lastRequest?.json() as Record<string, unknown> | undefined)?.['stream_options']

  describe.each(OPENAI_CLIENTS)('streamed chat with %s', (_name, makeClient) => {
    it('delivers every piece in order, without a trace of usage when the caller did not ask', async () => {
      const stream = await makeClient(lab.gateway).chat.completions.create({ ...chat('#chunks=40'), ...STREAM })
      const pieces: string[] = []
      for await (const chunk of stream) {
        expect(chunk).not.toHaveProperty('usage')
        expect(chunk.choices).toHaveLength(1)
        pieces.push(chunk.choices[0]?.delta.content ?? '')
      }
      expect(pieces.join('')).toBe(Array.from({ length: 40 }, (_, index) => `piece${index + 1}`).join(' '))
      expect(sentOptions()).toEqual({ include_usage: true })
    })

    it('reports usage to the caller who asked', async () => {
      const body = { ...chat('Hello'), ...STREAM, stream_options: { include_usage: true } }
      const usages: unknown[] = []
      for await (const chunk of await makeClient(lab.gateway).chat.completions.create(body)) usages.push(chunk.usage)
      expect(usages.slice(0, -1).every((usage) => usage === null)).toBe(true)
      expect(usages.at(-1)).toMatchObject({ prompt_tokens: expect.any(Number), total_tokens: expect.any(Number) })
    })

    it('works with the stream() helper', async () => {
      const stream = chatHelpers(makeClient(lab.gateway)).stream({ ...chat('Hello there'), n: 2 })
      const completion = await stream.finalChatCompletion()
      expect(completion.choices.map(({ message }) => message.content)).toEqual([
        'You said: Hello there',
        'You said: Hello there',
      ])
      expect(completion.choices.map(({ finish_reason }) => finish_reason)).toEqual(['stop', 'stop'])
    })
  })

  describe('the bytes of a chat stream', () => {
    it('are those of the upstream when the caller asked for usage', async () => {
      const frames = [
        'data: {"choices" : [], "x":1.0,"usage": null}',
        ': comment',
        'data: {"usage":{"total_tokens":1}}',
        'data: [DONE]',
      ]
      const body = frames.join('\n\n') + '\n\n'
      lab.simulator.queueFault({ kind: 'status', status: 200, headers: EVENT_STREAM, body })
      const more = { ...STREAM, stream_options: { include_usage: true } }
      const answer = await ask(lab.gateway, 'Hello', more)
      expect(answer.text).toBe(body)
    })

    it('lose nothing but the usage when the caller did not ask', async () => {
      const text = '{"delta":{"content":"say \\"usage\\":null, \\"usage\\": {}"}}'
      const body =
        `data: {"usage":null,"choices":[${text}]}\n\n` +
        `data: {"choices":[${text}] , "usage" : null,"x":1.50}\n\n` +
        `data: {"choices":[],"usage":{"prompt_tokens":3,"total_tokens":5}}\n\n` +
        `data: [DONE]\n\n`
      lab.simulator.queueFault({ kind: 'status', status: 200, headers: EVENT_STREAM, body })
      const answer = await ask(lab.gateway, 'Hello', STREAM)
      expect(answer.text).toBe(
        `data: {"choices":[${text}]}\n\ndata: {"choices":[${text}] ,"x":1.50}\n\ndata: [DONE]\n\n`,
      )
      const line = await lab.gateway.logLine(String(answer.headers['x-request-id']))
      expect(line['usage']).toEqual({ units: { prompt_tokens: 3, total_tokens: 5 }, estimated: false })
    })

    it('are usable events from the first to the terminator', async () => {
      const answer = await ask(lab.gateway, 'Hello', STREAM)
      const events = eventsOf(answer.text)
      expect(events.at(-1)).toBe('[DONE]')
      expect(answer.text).not.toContain('usage')
      expect(answer.complete).toBe(true)
      expect(answer.headers).toMatchObject({
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-cache',
        'x-accel-buffering': 'no',
        'x-ratelimit-limit-tokens': '600000',
      })
      expect(answer.headers).not.toHaveProperty('set-cookie')
    })

    it.each([
      ['{"include_usage":false}', '{"include_usage":true}'],
      ['null', '{"include_usage":true}'],
      [
        '{ "future":1.0, "big":12345678901234567890 }',
        '{ "future":1.0, "big":12345678901234567890,"include_usage":true }',
      ],
      ['{"include_usage": true, "future":1e3}', '{"include_usage": true, "future":1e3}'],
    ])('ask for usage and leave the other stream options %s as they are', async (given, sent) => {
      const body = (options: string): string =>
        `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"x"}],"stream":true,"stream_options":${options}}`
      await sendRaw(lab.gateway.url, { path: CHAT_PATH, body: body(given) })
      expect(lab.simulator.lastRequest?.body.toString()).toBe(body(sent))
    })
  })

  describe('the first event of a chat stream', () => {
    it('reaches the caller while the upstream is still working', async () => {
      const arrived = lab.simulator.nextRequest()
      const response = await openRaw(lab.gateway.url, { path: CHAT_PATH, body: chatText('#stall', STREAM) })
      const [first] = (await response.take(1).toArray()) as Buffer[]
      expect(first?.toString()).toMatch(/^data: \{"id":"chatcmpl-/)
      expect((await arrived).closedAtMs).toBeUndefined()
      response.destroy()
    })
  })
})

describe('strict chat', () => {
  let lab: P1Gateway
  shareLab(async () => (lab = await startP1Gateway()))

  const parameters = {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  }
  const WEATHER = {
    type: 'function',
    function: { name: 'get_weather', description: 'Weather by city', parameters },
  } as const
  const NOTHING = { type: 'object', properties: {} }
  const TIME = { type: 'function', function: { name: 'get_time' } } as const

  describe.each(OPENAI_CLIENTS)('tools in chat with %s', (_name, makeClient) => {
    it('come back as tool calls whose arguments are the very text of the model', async () => {
      const args = '{"city" : "Paris",\t"n":1.0}'
      const body = { ...chat(`Go #args=${args}`), tools: [WEATHER] }
      const data = await makeClient(lab.gateway).chat.completions.create(body)
      const [call] = data.choices[0]?.message.tool_calls ?? []
      expect(data.choices[0]?.finish_reason).toBe('tool_calls')
      expect(call).toMatchObject({ type: 'function', function: { name: 'get_weather', arguments: args } })
    })

    it('come in parallel in one stream, to be joined by their index', async () => {
      const body = { ...chat('get_weather and get_time please'), tools: [WEATHER, TIME], stream: true as const }
      const names: Record<number, string> = {}
      const args: Record<number, string> = {}
      for await (const chunk of await makeClient(lab.gateway).chat.completions.create(body)) {
        for (const { index, function: called } of chunk.choices[0]?.delta.tool_calls ?? []) {
          names[index] = (names[index] ?? '') + (called?.name ?? '')
          args[index] = (args[index] ?? '') + (called?.arguments ?? '')
        }
      }
      expect(names).toEqual({ 0: 'get_weather', 1: 'get_time' })
      expect(JSON.parse(args[0] ?? '')).toHaveProperty('city')
      expect(args[1]).toBe('{}')
    })

    it('run to the end in the runTools loop', async () => {
      const cities: unknown[] = []
      const runner = chatHelpers(makeClient(lab.gateway)).runTools({
        ...chat('What is the weather? #args={"city":"Paris"}'),
        tools: [
          {
            type: 'function',
            function: {
              name: 'get_weather',
              description: 'Weather by city',
              parameters,
              parse: (text: string) => JSON.parse(text) as { city: string },
              function: ({ city }: { city: string }) => {
                cities.push(city)
                return `sunny in ${city}`
              },
            },
          },
        ],
      })
      expect(await runner.finalContent()).toBe('The tools answered: sunny in Paris')
      expect(cities).toEqual(['Paris'])
      expect(lab.simulator.requests).toHaveLength(2)
      expect(lab.simulator.violations).toEqual([])
    })

    it('run to the end in the streaming runTools loop', async () => {
      const runner = chatHelpers(makeClient(lab.gateway)).runTools({
        ...chat('What time is it?'),
        stream: true,
        tools: [
          {
            type: 'function',
            function: { name: 'get_time', description: '', parameters: NOTHING, function: () => 'noon' },
          },
        ],
      })
      expect(await runner.finalContent()).toBe('The tools answered: noon')
    })
  })

  describe('tool turns on the wire', () => {
    it("carry the caller's argument text to the upstream without a change", async () => {
      const text = '"arguments":"{\\"city\\" : \\"\\u00c9vry\\", \\"n\\":1.0}"'
      const body =
        '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"x"},' +
        `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f",${text}}}]},` +
        '{"role":"tool","tool_call_id":"call_1","content":[{"type":"text","text":"ok"}]}]}'
      const answer = await sendRaw(lab.gateway.url, { path: CHAT_PATH, body })
      expect(answer.status).toBe(200)
      expect(lab.simulator.lastRequest?.body.toString()).toBe(body)
    })

    it.each([
      ['custom tools', { tools: [{ type: 'custom', custom: { name: 'shell', format: { type: 'text' } } }] }],
      ['forced tools', { tools: [WEATHER], tool_choice: { type: 'function', function: { name: 'get_weather' } } }],
      ['strict schemas', { tools: [{ ...WEATHER, function: { ...WEATHER.function, strict: true } }] }],
    ])('carry %s', async (_name, more) => {
      const answer = await ask(lab.gateway, 'Go', more)
      expect(answer.status).toBe(200)
      expect(answer.text).toContain('"tool_calls"')
    })
  })

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
      const body = JSON.stringify({ ...spoken('Hello', 'pcm16'), stream: true })
      const answer = await sendRaw(lab.gateway.url, { path: CHAT_PATH, body })
      const events = eventsOf(answer.text)
      expect(events.at(-1)).toBe('[DONE]')
      expect(events.at(-2)).toContain('"expires_at"')
      expect(answer.text).not.toContain('"usage"')
      const line = await lab.gateway.logLine(String(answer.headers['x-request-id']))
      expect(line['usage']).toMatchObject({
        units: { completion_tokens_details: { text_tokens: 3 } },
        estimated: false,
      })
    })

    it('records the usage of a long spoken answer too', async () => {
      const body = JSON.stringify(spoken('#words=200', 'wav'))
      const answer = await sendRaw(lab.gateway.url, { path: CHAT_PATH, body })
      expect(answer.body.length).toBeGreaterThan(1024 * 1024)
      const line = await lab.gateway.logLine(String(answer.headers['x-request-id']))
      expect(line['usage']).toMatchObject({ units: { completion_tokens_details: { text_tokens: 200 } } })
    })
  })

  type Case = readonly [fields: object, param: string, code: string]

  const MISSING = 'missing_required_parameter'
  const TYPE = 'invalid_type'
  const user = (content: unknown): object => ({ messages: [{ role: 'user', content }] })
  const inputAudio = (audio: unknown): object =>
    user([
      { type: 'text', text: 'x' },
      { type: 'input_audio', input_audio: audio },
    ])
  const spokenAs = (audio: unknown, more: object = {}): object => ({ modalities: ['text', 'audio'], audio, ...more })

  const MODEL_AND_MESSAGES: readonly Case[] = [
    [{ model: undefined }, 'model', MISSING],
    [{ model: null }, 'model', MISSING],
    [{ model: 7 }, 'model', TYPE],
    [{ model: '' }, 'model', 'empty_string'],
    [{ model: ' \n' }, 'model', 'empty_string'],
    [{ messages: undefined }, 'messages', MISSING],
    [{ messages: null }, 'messages', MISSING],
    [{ messages: 'Hello' }, 'messages', TYPE],
    [{ messages: {} }, 'messages', TYPE],
    [{ messages: [] }, 'messages', 'empty_array'],
    [{ messages: ['Hello'] }, 'messages[0]', TYPE],
    [{ messages: [null] }, 'messages[0]', TYPE],
    [{ messages: [{ role: 'user', content: 'x' }, { content: 'x' }] }, 'messages[1].role', MISSING],
    [{ messages: [{ role: 1, content: 'x' }] }, 'messages[0].role', TYPE],
    [{ messages: [{ role: '', content: 'x' }] }, 'messages[0].role', 'empty_string'],
    [user(7), 'messages[0].content', TYPE],
    [user({ text: 'x' }), 'messages[0].content', TYPE],
    [user(['x']), 'messages[0].content[0]', TYPE],
    [user([{ text: 'x' }]), 'messages[0].content[0].type', MISSING],
  ]

  const AUDIO: readonly Case[] = [
    [inputAudio(undefined), 'messages[0].content[1].input_audio', MISSING],
    [inputAudio({ format: 'wav' }), 'messages[0].content[1].input_audio.data', MISSING],
    [inputAudio({ data: 'UklGRg==' }), 'messages[0].content[1].input_audio.format', MISSING],
    [
      inputAudio({ data: 'UklGRg==', format: 'ogg' }),
      'messages[0].content[1].input_audio.format',
      'invalid_audio_format',
    ],
    [
      inputAudio({ data: 'data:audio/wav;base64,UklGRg==', format: 'wav' }),
      'messages[0].content[1].input_audio.data',
      'invalid_value',
    ],
    [{ modalities: 'audio' }, 'modalities', TYPE],
    [{ modalities: [1] }, 'modalities[0]', TYPE],
    [{ modalities: ['audio'] }, 'audio', MISSING],
    [spokenAs('wav'), 'audio', TYPE],
    [spokenAs({ format: 'wav' }), 'audio.voice', MISSING],
    [spokenAs({ voice: '', format: 'wav' }), 'audio.voice', TYPE],
    [spokenAs({ voice: 'alloy' }), 'audio.format', MISSING],
    [spokenAs({ voice: 'alloy', format: 'ogg' }), 'audio.format', 'invalid_audio_format'],
    [spokenAs({ voice: 'alloy', format: 'wav' }, { stream: true }), 'audio.format', 'unsupported_value'],
  ]

  const OPTIONS: readonly Case[] = [
    [{ stream: 'true' }, 'stream', TYPE],
    [{ stream: 1 }, 'stream', TYPE],
    [{ stream: true, stream_options: true }, 'stream_options', TYPE],
    [{ stream: true, stream_options: { include_usage: 'yes' } }, 'stream_options.include_usage', TYPE],
    [{ max_tokens: '10' }, 'max_tokens', TYPE],
    [{ max_tokens: 1.5 }, 'max_tokens', TYPE],
    [{ max_tokens: 0 }, 'max_tokens', 'integer_below_min_value'],
    [{ max_tokens: -1 }, 'max_tokens', 'integer_below_min_value'],
    [{ temperature: '1' }, 'temperature', TYPE],
    [{ temperature: -0.1 }, 'temperature', 'decimal_below_min_value'],
    [{ temperature: 2.1 }, 'temperature', 'decimal_above_max_value'],
    [{ tools: {} }, 'tools', TYPE],
    [{ tools: ['get_weather'] }, 'tools[0]', TYPE],
    [{ tools: [{ function: { name: 'f' } }] }, 'tools[0].type', MISSING],
    [{ tools: [{ type: 'function' }] }, 'tools[0].function', MISSING],
    [{ tools: [{ type: 'function', function: {} }] }, 'tools[0].function.name', MISSING],
    [{ tools: [{ type: 'function', function: { name: 1 } }] }, 'tools[0].function.name', TYPE],
    [{ tools: [{ type: 'function', function: { name: 'f', description: 1 } }] }, 'tools[0].function.description', TYPE],
    [{ tools: [{ type: 'function', function: { name: 'f', parameters: [] } }] }, 'tools[0].function.parameters', TYPE],
  ]

  describe('a chat request is refused before the upstream hears of it, and the field at fault is named', () => {
    it.each([...MODEL_AND_MESSAGES, ...AUDIO, ...OPTIONS])('%j → %s %s', async (fields, param, code) => {
      const body = JSON.stringify({ ...chat('Hello'), ...fields })
      await expectRefused(lab, { path: CHAT_PATH, body }, { status: 400, code, param })
    })
  })

  describe('a chat request is not refused', () => {
    it.each([
      [{ stream: null, stream_options: null, tools: null, max_tokens: null, temperature: null, modalities: null }],
      [{ temperature: 0 }],
      [{ temperature: 2, max_tokens: 1 }],
      [
        {
          messages: [
            { role: 'developer', content: 'x' },
            { role: 'user', content: [{ type: 'text', text: '' }] },
          ],
        },
      ],
      [{ messages: [{ role: 'user', content: '' }] }],
    ])('for %j', async (fields) => {
      const allowed = { ...chat('Hello'), ...fields }
      // The upstream has the last word on fields it wants absent rather than null.
      const body = JSON.stringify(allowed, (name, value: unknown) =>
        name === 'tools' && value === null ? undefined : value,
      )
      expect((await sendRaw(lab.gateway.url, { path: CHAT_PATH, body })).status).toBe(200)
      expect(lab.simulator.lastRequest?.body.toString()).toBe(body)
    })
  })
})

describe('models', () => {
  const LIMITED_KEY = 'limited-gateway-key'

  const SETTINGS = {
    keys: [
      { id: 'test', key: TEST_KEY },
      { id: 'limited', key: LIMITED_KEY, models: ['tts-*', 'house-model', 'claude-*'] },
    ],
    channel: { models: ['tts-1', 'tts-1-hd', 'gpt-4o*', 'house-model', 'open-ended-*', 'org/*'] },
    sections: {
      models: ['open-ended-row', 'org/model', 'org/family/a:b'].map((id) => ({ id, class: 'chat', providers: ['p1'] })),
    },
  }

  let lab: P1Gateway
  shareLab(async () => (lab = await startP1Gateway(SETTINGS)))

  interface Listing {
    readonly object: string
    readonly data: readonly {
      readonly id: string
      readonly object: string
      readonly owned_by: string
      readonly x_gateway: { readonly voices?: readonly string[]; readonly formats?: readonly string[] }
    }[]
  }

  const list = async (key: string): Promise<Listing> => {
    const headers = { authorization: `Bearer ${key}` }
    const answer = await sendRaw(lab.gateway.url, { method: 'GET', path: '/v1/models', headers })
    expect(answer.status).toBe(200)
    return JSON.parse(answer.text) as Listing
  }

  describe('the list of models', () => {
    it('holds what some channel serves, once each and in order, and nothing else', async () => {
      const { object, data } = await list(TEST_KEY)
      const ids = data.map(({ id }) => id)
      expect(object).toBe('list')
      expect(ids).toEqual(expect.arrayContaining(['tts-1', 'gpt-4o', 'gpt-4o-mini', 'house-model', 'open-ended-row']))
      expect(ids).toEqual([...new Set(ids)].sort())
      for (const absent of ['tts-1-1106', 'gpt-5', 'claude-sonnet-4-5', 'speech-02-hd', 'vidgen-v1-6'])
        expect(ids).not.toContain(absent)
      expect(data.every((model) => model.object === 'model' && model.owned_by === 'p1')).toBe(true)
    })

    it('says what each can do, and what there is to choose', async () => {
      const { data } = await list(TEST_KEY)
      const detailsOf = (id: string): unknown => data.find((model) => model.id === id)?.x_gateway
      expect(detailsOf('gpt-4o')).toEqual({ class: 'chat', capabilities: ['chat', 'responses'] })
      expect(detailsOf('tts-1')).toEqual({
        class: 'tts',
        capabilities: ['speech'],
        voices: expect.arrayContaining(['alloy', 'echo', 'fable', 'onyx', 'nova', 'shimmer']),
        formats: ['mp3', 'wav', 'aac', 'flac', 'opus', 'pcm'],
      })
    })

    it('has only voices and formats that its upstream takes', async () => {
      const { data } = await list(TEST_KEY)
      const { voices = [], formats = [] } = data.find(({ id }) => id === 'tts-1')?.x_gateway ?? {}
      const choices = [...voices.map((voice) => ({ voice })), ...formats.map((format) => ({ response_format: format }))]
      for (const choice of choices) {
        const answer = await sendRaw(lab.gateway.url, { path: SPEECH_PATH, body: speechText('Hello', choice) })
        expect([choice, answer.status]).toEqual([choice, 200])
      }
    })

    it('holds only what the key may use', async () => {
      const ids = (await list(LIMITED_KEY)).data.map(({ id }) => id)
      expect(ids).toEqual(['house-model', 'tts-1', 'tts-1-hd'])
    })

    it.each([
      ['/v1/models/org/model', 'org/model'],
      ['/v1/models/org%2Fmodel', 'org/model'],
      ['/v1/models/org/family/a%3Ab', 'org/family/a:b'],
      ['/v1/models/org%2ffamily%2Fa%3Ab', 'org/family/a:b'],
    ])('has names with slashes, which are found as %s', async (path, id) => {
      expect((await list(TEST_KEY)).data.map((model) => model.id)).toContain(id)
      const answer = await sendRaw(lab.gateway.url, { method: 'GET', path })
      expect([answer.status, JSON.parse(answer.text)]).toMatchObject([200, { id }])
    })

    it.each([
      ['/v1/models/org/model/', 'at /v1/models/{model}: paths do not end with a slash.'],
      ['/v1/models/org//model', 'at /v1/models/{model}: '],
    ])('is told of a slash too many at %s', async (path, words) => {
      const answer = await sendRaw(lab.gateway.url, { method: 'GET', path })
      expect([answer.status, errorOf(answer)]).toMatchObject([
        404,
        { code: 'not_found', message: expect.stringContaining(words) },
      ])
    })

    it.each(['/v1/models/org', '/v1/models/org%252Fmodel'])('has no model at %s', async (path) => {
      const answer = await sendRaw(lab.gateway.url, { method: 'GET', path })
      expect([answer.status, errorOf(answer)]).toMatchObject([404, { code: 'model_not_found' }])
    })

    it('asks no upstream and is closed to strangers', async () => {
      await list(TEST_KEY)
      const headers = { authorization: 'Bearer unknown' }
      const answer = await sendRaw(lab.gateway.url, { method: 'GET', path: '/v1/models', headers })
      expect(answer.status).toBe(401)
      expect(errorOf(answer)).toMatchObject({ type: 'authentication_error', code: 'invalid_api_key' })
      expect(lab.simulator.requests).toEqual([])
    })

    it('allows no other method', async () => {
      for (const path of ['/v1/models/gpt-4o', '/v1/models/org/model']) {
        const answer = await sendRaw(lab.gateway.url, { method: 'DELETE', path })
        expect([path, answer.status, answer.headers['allow']]).toEqual([path, 405, 'GET, HEAD'])
      }
    })
  })

  describe.each(OPENAI_CLIENTS)('models with %s', (_name, makeClient) => {
    it('are listed and retrieved', async () => {
      const client = makeClient(lab.gateway)
      const ids: string[] = []
      for await (const model of client.models.list()) ids.push(model.id)
      expect(ids).toContain('gpt-4o')
      expect(await client.models.retrieve('gpt-4o')).toMatchObject({
        id: 'gpt-4o',
        object: 'model',
        created: Date.parse('2024-05-13') / 1000,
      })
    })

    it.each(['no-such-model', 'gpt-5', 'a%2Fb'])('do not include %s', async (id) => {
      const wanted = makeClient(lab.gateway).models.retrieve(id)
      await expect(wanted).rejects.toMatchObject({ status: 404, code: 'model_not_found', param: 'model' })
    })

    it('do not include what the key may not use', async () => {
      const client = makeClient(lab.gateway, { apiKey: LIMITED_KEY })
      await expect(client.models.retrieve('gpt-4o')).rejects.toMatchObject({ status: 404 })
      expect(await client.models.retrieve('tts-1')).toMatchObject({ id: 'tts-1' })
    })
  })
})
