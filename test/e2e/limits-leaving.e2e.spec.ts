import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Writable } from 'node:stream'
import { constants, createGzip } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { eventually } from '../support/eventually.js'
import { CHAT_PATH, openRaw, startGateway, type TestGateway } from '../support/gateway.js'
import { askLimits } from '../support/limited-gateway.js'
import { listenOnLoopback, type LoopbackServer } from '../support/loopback-server.js'
import { MESSAGES } from '../support/m1-gateway.js'
import { UPSTREAM_KEY } from '../support/provider-gateways.js'

/** Of each key. */
const LIMIT = 10_000_000
const KEYS = 200

/** An answer that the test writes frame by frame. */
interface Answer {
  readonly response: ServerResponse
  readonly isGone: () => boolean
}

/** What a caller asks, and how the upstream answers: `figures` come behind all else, and tell the truth. */
interface Script {
  readonly path: string
  readonly body: object
  readonly frames: readonly string[]
  readonly figures: string
  /** The upstream has more to say than `frames`, and no end. */
  readonly isEndless?: boolean
  /** In an encoding that the gateway has not asked for. */
  readonly isZipped?: boolean
}

const data = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`
const event = (type: string, fields: object = {}): string => `event: ${type}\n${data({ type, ...fields })}`

const textFrame = (content: string, index = 0): string => data({ choices: [{ index, delta: { content } }] })
const finishFrame = (index = 0): string => data({ choices: [{ index, delta: {}, finish_reason: 'stop' }] })

const QUESTION = [{ role: 'user', content: 'Hello' }]

function chatScript(pieces: readonly string[], completion: number, more: object = {}): Script {
  const { n = 1 } = more as { n?: number }
  const choices = Array.from({ length: n }, (_none, index) => index)
  const texts = choices.flatMap((index) => pieces.map((piece) => textFrame(piece, index)))
  const usage = { prompt_tokens: 10, completion_tokens: completion, total_tokens: 10 + completion }
  return {
    path: CHAT_PATH,
    body: { model: 'gpt-4o-mini', messages: QUESTION, stream: true, ...more },
    frames: [...texts, ...choices.map(finishFrame)],
    figures: `${data({ choices: [], usage })}data: [DONE]\n\n`,
  }
}

function messagesScript(blocks: readonly (readonly string[])[], output: number, more: object = {}): Script {
  const frames = blocks.flatMap((pieces, index) => [
    event('content_block_start', { index, content_block: { type: 'text', text: '' } }),
    ...pieces.map((text) => event('content_block_delta', { index, delta: { type: 'text_delta', text } })),
    event('content_block_stop', { index }),
  ])
  const usage = { input_tokens: 10, output_tokens: 1 }
  return {
    path: MESSAGES,
    body: { model: 'claude-sonnet-4-5', max_tokens: 5000, messages: QUESTION, stream: true, ...more },
    frames: [event('message_start', { message: { id: 'm', role: 'assistant', content: [], usage } }), ...frames],
    figures:
      event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: output } }) +
      event('message_stop'),
  }
}

/** A response with an item for each list of pieces. Nothing of it is kept: no store is opened. */
function responsesScript(items: readonly (readonly string[])[], output: number, more: object = {}): Script {
  const frames = items.flatMap((pieces, index) => [
    event('response.output_item.added', { output_index: index, item: { type: 'message', content: [] } }),
    ...pieces.map((delta) => event('response.output_text.delta', { output_index: index, delta })),
    event('response.output_text.done', { output_index: index, text: pieces.join('') }),
    event('response.output_item.done', { output_index: index, item: { type: 'message' } }),
  ])
  const usage = { input_tokens: 10, output_tokens: output, total_tokens: 10 + output }
  const response = { id: 'resp_1', status: 'completed', output: [], usage }
  return {
    path: '/v1/responses',
    body: { model: 'gpt-4o-mini', input: 'Hello', stream: true, store: false, ...more },
    frames: [event('response.created', { response: { ...response, status: 'in_progress', usage: null } }), ...frames],
    figures: event('response.completed', { response }),
  }
}

describe('A caller with a limit of tokens who leaves', () => {
  let upstream: LoopbackServer
  let gateway: TestGateway
  let arrived: (answer: Answer) => void
  let keys = 0

  beforeAll(async () => {
    const server = createServer((request: IncomingMessage, response: ServerResponse) => {
      request.resume()
      let isGone = false
      response.once('close', () => (isGone = !response.writableEnded))
      arrived({ response, isGone: () => isGone })
    })
    upstream = await listenOnLoopback(server)
    const baseUrl = `http://127.0.0.1:${upstream.port}`
    const limits = { tokensPerMinute: LIMIT, concurrency: 1 }
    gateway = await startGateway({
      channels: [
        { id: 'p1', provider: 'p1', baseUrl, credentials: UPSTREAM_KEY, models: ['gpt-*', 'o4-*', 'own-*'] },
        { id: 'm1', provider: 'm1', baseUrl, credentials: UPSTREAM_KEY },
      ],
      keys: Array.from({ length: KEYS }, (_none, index) => ({ id: `k${index}`, key: `k${index}`, limits })),
    })
  })
  afterAll(async () => {
    await gateway.close()
    await upstream.close()
  })

  interface Left {
    /** Of the limit, once the call is over. */
    readonly debited: number
    /** The upstream's work was ended, and the rest was not read. */
    readonly wasEnded: boolean
  }

  const stateOf = async (key: string, name: string): Promise<number> =>
    (await askLimits(gateway.url, key)).limits[name]?.remaining ?? NaN

  /** Reads so many frames of an answer and leaves; the upstream says the rest if its work is not ended. */
  async function leave(
    { path, body, frames, figures, isEndless = false, isZipped = false }: Script,
    read: number,
    key = `k${keys++}`,
  ): Promise<Left> {
    const before = await stateOf(key, 'tokensPerMinute')
    const asked = new Promise<Answer>((resolve) => (arrived = resolve))
    const departed = new Promise((resolve) => {
      gateway.server.once('request', (_request: IncomingMessage, response: ServerResponse) => {
        response.once('close', resolve)
      })
    })
    const opening = openRaw(gateway.url, {
      path,
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify(body),
    })
    const { response, isGone } = await asked
    const shown = frames.slice(0, read).join('')
    const output = outputTo(response, isZipped)
    output.write(shown)
    const answer = await opening
    for (let bytes = 0; bytes < Buffer.byteLength(shown);) bytes += ((await once(answer, 'data')) as [Buffer])[0].length
    answer.destroy()
    await departed
    const wasEnded = (await stateOf(key, 'concurrency')) === 1
    if (wasEnded) await eventually(isGone)
    else if (isEndless) output.write(frames.slice(read).join(''))
    else output.end(frames.slice(read).join('') + figures)
    if (isEndless) await eventually(isGone)
    await eventually(async () => (await stateOf(key, 'concurrency')) === 1)
    return { debited: before - (await stateOf(key, 'tokensPerMinute')), wasEnded }
  }

  it('before the figures of complete answers is debited what the upstream says they have used', async () => {
    const key = `k${keys++}`
    let debited = 0
    for (let call = 0; call < 20; call++) {
      const script = chatScript(['Hello', ' there'], 24_990)
      const left = await leave(script, script.frames.length, key)
      expect(left.wasEnded).toBe(false)
      debited += left.debited
    }
    expect(debited).toBe(500_000)
  })

  it('before the figures of a message is debited what the upstream says, and what follows its last block tells', async () => {
    const script = messagesScript([['Hello'], [' there']], 24_990)
    expect(await leave(script, script.frames.length)).toEqual({ debited: 25_000, wasEnded: false })
  })

  it('before the figures of an answer that was encoded unasked is debited what the upstream says', async () => {
    const script: Script = { ...chatScript(['Hello', ' there'], 24_990), isZipped: true }
    expect(await leave(script, script.frames.length)).toEqual({ debited: 25_000, wasEnded: false })
    expect((await leave(script, 1)).wasEnded).toBe(true)
  })

  it('while another block of a message may begin ends the work as soon as one does', async () => {
    const script = messagesScript([['Hello'], ['x'.repeat(400)]], 24_990)
    // What the upstream says next is the beginning of the second block.
    const left = await leave({ ...script, frames: script.frames.slice(0, 5), isEndless: true }, 4)
    expect(left.wasEnded).toBe(false)
    expect(left.debited).toBeLessThan(200)
  })

  it('before the figures of a response is debited what the upstream says, and what follows its last item tells', async () => {
    const script = responsesScript([['Hello'], [' there']], 24_990)
    expect(await leave(script, script.frames.length)).toEqual({ debited: 25_000, wasEnded: false })
    expect((await leave(script, script.frames.length - 1)).wasEnded).toBe(true)
  })

  it('while another item of a response may begin ends the work as soon as one does', async () => {
    const script = responsesScript([['Hello'], ['x'.repeat(400)]], 24_990)
    // What the upstream says next is the beginning of the second item.
    const left = await leave({ ...script, frames: script.frames.slice(0, 6), isEndless: true }, 5)
    expect(left.wasEnded).toBe(false)
    expect(left.debited).toBeLessThan(200)
  })

  it('before every choice has its finish reason ends the work', async () => {
    const script = chatScript(['Hello'], 5_000, { n: 3 })
    expect((await leave(script, script.frames.length - 1)).wasEnded).toBe(true)
    expect(await leave(script, script.frames.length)).toEqual({ debited: 5_010, wasEnded: false })
  })

  it('is debited the words that came, however few frames they came in', async () => {
    const pieces = Array.from({ length: 10 }, () => 'word and '.repeat(200))
    const { debited, wasEnded } = await leave(chatScript(pieces, 4_600), 10)
    expect(wasEnded).toBe(true)
    expect(debited).toBeGreaterThanOrEqual(4_500)
  })

  const NOTHING_YET = { prompt_tokens: 10, completion_tokens: 0, total_tokens: 10 }
  const early: readonly (readonly [string, (frames: readonly string[]) => readonly string[]])[] = [
    ['with the first frame', (frames) => [data({ choices: [], usage: NOTHING_YET }), ...frames]],
    [
      'with every piece',
      (frames) =>
        frames.map((frame) => frame.replace(/^data: {(?=.*content)/, `$&"usage":${JSON.stringify(NOTHING_YET)},`)),
    ],
  ]
  it.each(early)('is debited what was counted where its upstream says zeros %s', async (_when, framesOf) => {
    const script = chatScript(
      Array.from({ length: 20 }, () => 'word and '.repeat(20)),
      24_990,
      {
        stream_options: { include_usage: true },
      },
    )
    const told: Script = { ...script, frames: framesOf(script.frames) }
    const left = await leave(told, 15)
    expect(left.wasEnded).toBe(true)
    expect(left.debited).toBeGreaterThanOrEqual(14 * 45)
    expect(await leave(told, told.frames.length)).toEqual({ debited: 25_000, wasEnded: false })
  })

  it('is debited what was counted where its upstream says too little in the middle of a message', async () => {
    const script = messagesScript([Array.from({ length: 20 }, () => 'word and '.repeat(20))], 24_990)
    const little = event('message_delta', { delta: { stop_reason: null }, usage: { output_tokens: 1 } })
    const [start = '', ...frames] = script.frames
    const told: Script = { ...script, frames: [start, little, ...frames] }
    const left = await leave(told, 17)
    expect(left.wasEnded).toBe(true)
    expect(left.debited).toBeGreaterThanOrEqual(14 * 45)
    expect(await leave(told, told.frames.length)).toEqual({ debited: 25_000, wasEnded: false })
  })

  const THINKING: readonly (readonly [string, Script])[] = [
    ['by the catalogue', chatScript(['Hello'], 20_000, { model: 'o4-mini', max_completion_tokens: 20_000 })],
    ['because it was asked to', chatScript(['Hello'], 20_000, { max_tokens: 20_000, reasoning_effort: 'high' })],
    ['as far as is known', chatScript(['Hello'], 20_000, { model: 'own-1', max_tokens: 20_000 })],
    [
      'in messages',
      messagesScript([['Hello']], 20_000, { max_tokens: 20_000, thinking: { type: 'enabled', budget_tokens: 2000 } }),
    ],
    [
      'in a response',
      responsesScript([['Hello']], 20_000, { max_output_tokens: 20_000, reasoning: { effort: 'high' } }),
    ],
  ]
  it.each(THINKING)('is debited all that was reserved where a model thinks unseen, %s', async (_how, script) => {
    const { debited, wasEnded } = await leave(script, 1)
    expect(wasEnded).toBe(true)
    expect(debited).toBeGreaterThanOrEqual(20_000)
    // Its figures, where they come, are what counts.
    expect((await leave(script, script.frames.length)).debited).toBe(20_010)
  })

  it('is debited what was read of a model whose figures have told that it does not think', async () => {
    const script = chatScript(['Hello'], 30, { model: 'own-2', max_tokens: 20_000 })
    await leave(script, script.frames.length)
    expect((await leave(script, 1)).debited).toBeLessThan(100)
  })

  it('is debited the images of a prompt that the upstream has read', async () => {
    const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(2000)}` } }
    const script = chatScript(['Hello'], 30, { messages: [{ role: 'user', content: [image, image, image] }] })
    expect((await leave(script, 1)).debited).toBeGreaterThanOrEqual(3_000)
  })

  it('is never debited less than was made until then, wherever it leaves and whatever the frames hold', async () => {
    const piece = fc.string({ unit: fc.constantFrom('a', 'word ', ' 日', '"', '\n'), minLength: 1, maxLength: 400 })
    const run = fc.record({
      pieces: fc.array(piece, { minLength: 1, maxLength: 8 }),
      cut: fc.double({ min: 0, max: 1, noNaN: true }),
      family: fc.constantFrom('chat', 'choices', 'messages', 'responses'),
      thoughts: fc.constantFrom(0, 0, 700),
    })
    await fc.assert(
      fc.asyncProperty(run, async ({ pieces, cut, family, thoughts }) => {
        const choices = family === 'choices' ? 2 : 1
        const whole = tokensOf(pieces) * choices + thoughts
        const maximum = family === 'responses' ? { max_output_tokens: 4000 } : { max_tokens: 4000 }
        const more = { ...maximum, ...(thoughts > 0 ? REASONING[family] : {}) }
        const script = scriptOf(family, pieces, whole, { ...more, ...(choices > 1 ? { n: choices } : {}) })
        const read = Math.max(1, Math.round(cut * script.frames.length))
        const { debited, wasEnded } = await leave(script, read)
        const isComplete = read === script.frames.length
        expect(wasEnded).toBe(!isComplete)
        // What has passed, in the order of the frames; the thoughts came before.
        const made = tokensOf(script.frames.slice(0, read).flatMap(textIn))
        if (isComplete) expect(debited).toBe(10 + whole)
        else expect(debited).toBeGreaterThanOrEqual(made + thoughts)
      }),
      { numRuns: 60 },
    )
  })
})

/** What is written to it is sent at once. */
function outputTo(response: ServerResponse, isZipped: boolean): Writable {
  const type = { 'content-type': 'text/event-stream' }
  response.writeHead(200, isZipped ? { ...type, 'content-encoding': 'gzip' } : type)
  if (!isZipped) return response
  const encoder = createGzip({ flush: constants.Z_SYNC_FLUSH })
  encoder.pipe(response)
  return encoder
}

/** One for each frame where frames are as short as tokens are, else one for four bytes. */
function tokensOf(pieces: readonly string[]): number {
  const bytes = pieces.reduce((sum, each) => sum + Buffer.byteLength(each), 0)
  return bytes > 8 * pieces.length ? Math.ceil(bytes / 4) : pieces.length
}

/** The text of a frame; none of one that begins or ends something. */
function textIn(frame: string): readonly string[] {
  const { choices, delta } = JSON.parse(frame.slice(frame.indexOf('data: ') + 6)) as {
    readonly choices?: readonly { readonly delta: { readonly content?: string } }[]
    readonly delta?: string | { readonly text: string }
  }
  const text = choices?.[0]?.delta.content ?? (typeof delta === 'string' ? delta : delta?.text)
  return text === undefined ? [] : [text]
}

function scriptOf(family: string, pieces: readonly string[], whole: number, more: object): Script {
  if (family === 'messages') return messagesScript([pieces], whole, more)
  return family === 'responses' ? responsesScript([pieces], whole, more) : chatScript(pieces, whole, more)
}

/** How requests of each family ask for thoughts. */
const REASONING: Readonly<Record<string, object>> = {
  chat: { reasoning_effort: 'low' },
  choices: { reasoning_effort: 'low' },
  messages: { thinking: { type: 'enabled', budget_tokens: 1024 } },
  responses: { reasoning: { effort: 'low' } },
}
