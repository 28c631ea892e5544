import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { SPEECH_PATH } from '../support/chat-bodies.js'
import { UPSTREAM_KEY } from '../support/p1-gateway.js'
import { P3_MODEL, p3Text, startP3Gateway, type P3Gateway } from '../support/p3-gateway.js'
import { errorOf, eventsOf, sendRaw, type RawAnswer } from '../support/raw-http.js'

let lab: P3Gateway

beforeAll(async () => {
  lab = await startP3Gateway()
})
beforeEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

const TEXT = 'The kettle is on.'
const SUBTITLES = { subtitle_enable: true }
const LINK = { output_format: 'url' }

const speak = (more: object, text = TEXT, of = lab): Promise<RawAnswer> =>
  sendRaw(of.gateway.url, { path: SPEECH_PATH, body: p3Text(text, more) })

interface LinkedAnswer {
  readonly data: { readonly audio: string }
  readonly extra_info: { readonly audio_size: number }
}

/** What the upstream itself answers with a link to the samples of this text. */
async function linkedUpstream(text: string): Promise<LinkedAnswer> {
  const body = {
    model: P3_MODEL,
    text,
    voice_setting: { voice_id: 'Calm_Woman' },
    audio_setting: { format: 'pcm', sample_rate: 24_000 },
    ...LINK,
  }
  const headers = { authorization: `Bearer ${UPSTREAM_KEY}` }
  const answer = await sendRaw(lab.simulator.url, { path: '/v1/t2a_v2', body: JSON.stringify(body), headers })
  return JSON.parse(answer.text) as LinkedAnswer
}

interface Subtitle {
  readonly text: string
}

async function subtitlesOf(answer: RawAnswer): Promise<string> {
  const response = await fetch(String(answer.headers['x-subtitle-url']))
  return ((await response.json()) as Subtitle[]).map(({ text }) => text).join(' ')
}

describe.each(['mp3', 'wav', 'flac', 'pcm'])('speech in %s', (response_format) => {
  it.each([
    ['with subtitles', SUBTITLES],
    ['behind a link', LINK],
    ['with subtitles, behind a link', { ...SUBTITLES, ...LINK }],
  ])('%s has the same bytes as without', async (_name, metadata) => {
    const plain = await speak({ response_format })
    const answer = await speak({ response_format, metadata })
    expect(answer).toMatchObject({ status: 200, complete: true })
    expect(answer.body.equals(plain.body)).toBe(true)
    expect(answer.headers['content-type']).toBe(plain.headers['content-type'])
    expect('x-subtitle-url' in answer.headers).toBe('subtitle_enable' in metadata)
    if ('subtitle_enable' in metadata) expect(await subtitlesOf(answer)).toBe(TEXT)
    expect(lab.simulator.violations).toEqual([])
    const line = await lab.gateway.logLine(String(answer.headers['x-request-id']))
    expect(line).toMatchObject({ usage: { units: { input_characters: TEXT.length }, estimated: false } })
    expect(line['upstreamRequestId']).toMatch(/^[0-9a-f]{32}$/)
  })

  it('with subtitles comes as events, too', async () => {
    const answer = await speak({ response_format, metadata: SUBTITLES, stream_format: 'sse' })
    const events = eventsOf(answer.text)
    expect(events.at(-1)).toBe('[DONE]')
    const parsed = events.slice(0, -1).map((event) => JSON.parse(event) as { audio?: string })
    const audio = Buffer.concat(parsed.map((event) => Buffer.from(event.audio ?? '', 'base64')))
    expect(audio.equals((await speak({ response_format })).body)).toBe(true)
    expect(answer.headers['x-subtitle-url']).toMatch(/^http:/)
    expect(answer.headers['content-length']).toBeUndefined()
  })
})

describe('speech with subtitles', () => {
  it('says how long it is, as all of it is at hand', async () => {
    const answer = await speak({ metadata: SUBTITLES })
    expect(answer.headers['content-length']).toBe(String(answer.body.length))
  })

  it('that breaks off is an error, not half a speech', async () => {
    for (const word of ['#cut', '#badhex', '#oddhex']) {
      expect((await speak({ metadata: SUBTITLES }, `${word} Hello there, a longer sentence.`)).status).toBe(500)
    }
  })
})

describe('a link to the audio', () => {
  it.each(['#urldead', '#urlprivate'])('that leads nowhere (%s) is the upstream’s failure', async (word) => {
    const answer = await speak({ metadata: LINK }, `${word} Hello`)
    expect([answer.status, errorOf(answer).code]).toEqual([500, 'upstream_failed'])
    expect(answer.headers['x-should-retry']).toBe('false')
    expect(answer.text).not.toMatch(/169\.254|files/)
  })

  it('is not followed to a private address that nobody has exempted', async () => {
    const guarded = await startP3Gateway({ fetchesLinks: false })
    try {
      const answer = await speak({ metadata: LINK }, TEXT, guarded)
      expect([answer.status, errorOf(answer).code]).toEqual([500, 'upstream_failed'])
      expect(guarded.simulator.requests.map(({ method }) => method)).toEqual(['POST'])
    } finally {
      await guarded.close()
    }
  })

  it('that does not work is tried on another channel', async () => {
    const pair = await startP3Gateway({ withSecond: true })
    try {
      const answer = {
        data: { audio: `${pair.simulator.url}/files/none.mp3`, status: 2 },
        base_resp: { status_code: 0 },
      }
      pair.simulator.queueFault({ kind: 'status', status: 200, body: JSON.stringify(answer) })
      expect((await speak({ metadata: LINK }, TEXT, pair)).status).toBe(200)
      expect(pair.second.requests.map(({ method }) => method)).toEqual(['POST', 'GET'])
    } finally {
      await pair.close()
    }
  })

  it('to less audio than the upstream says it made is a visible cut', async () => {
    const made = await linkedUpstream(`${TEXT} `.repeat(20))
    const bytes = (await (await fetch(made.data.audio)).arrayBuffer()).byteLength
    expect(made.extra_info.audio_size).toBe(bytes)
    for (const complete of [true, false]) {
      const answered = { ...made, extra_info: { audio_size: complete ? bytes : bytes + 1 } }
      lab.simulator.queueFault({ kind: 'status', status: 200, body: JSON.stringify(answered) })
      const raw = await speak({ metadata: LINK, response_format: 'pcm' })
      expect([raw.status, raw.complete]).toEqual([200, complete])
      lab.simulator.queueFault({ kind: 'status', status: 200, body: JSON.stringify(answered) })
      const events = await speak({ metadata: LINK, response_format: 'pcm', stream_format: 'sse' })
      expect(eventsOf(events.text).at(-1) === '[DONE]').toBe(complete)
    }
  })

  it.each([
    ['is missing', { data: { audio: '', status: 2 } }],
    ['is no link', { data: { audio: 'fff364c4', status: 2 } }],
    ['is a file here', { data: { audio: 'file:///etc/passwd', status: 2 } }],
    ['is too long', { data: { audio: `https://example.com/${'x'.repeat(70_000)}`, status: 2 } }],
    ['stands in no object', []],
  ])('that %s is a broken answer', async (_fault, body) => {
    lab.simulator.queueFault({ kind: 'status', status: 200, body: JSON.stringify(body) })
    const answer = await speak({ metadata: LINK })
    expect([answer.status, errorOf(answer).code]).toEqual([500, 'upstream_failed'])
  })

  it('to a page instead of audio is the upstream’s failure', async () => {
    lab.simulator.once('request', () => {
      lab.simulator.queueFault('html')
    })
    const answer = await speak({ metadata: LINK })
    expect([answer.status, errorOf(answer).code]).toEqual([500, 'upstream_failed'])
  })
})
