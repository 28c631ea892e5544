import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { TRANSCRIPTIONS, TRANSLATIONS } from '../support/audio-uploads.js'
import { CHAT_PATH, chatText, SPEECH_PATH, speechText } from '../support/chat-bodies.js'
import { eventually } from '../support/eventually.js'
import {
  askAs,
  BY_MINUTE,
  inChat,
  inImages,
  inMessages,
  inTasks,
  limitHeaders,
  type RefusalBody,
  shownLimit,
} from '../support/limit-answers.js'
import { type LimitedGateway, startLimitedGateway } from '../support/limited-gateway.js'
import { COUNT_TOKENS, MESSAGES, messageText } from '../support/m1-gateway.js'
import type { RawRequest } from '../support/raw-http.js'
import { filePart, MULTIPART, multipartBytes } from '../support/upload-server.js'

const VIDEOS = '/vidgen/v1/videos/text2video'
const DOCUMENTS = '/v1/document/parse'

let lab: LimitedGateway

beforeAll(async () => {
  lab = await startLimitedGateway({
    spent: { requestsPerMinute: 1 },
    full: { requestsPerMinute: 50, concurrency: 1 },
    task: { requestsPerMinute: 3 },
  })
})
afterAll(() => lab.close())

const RECORDING = multipartBytes([filePart('no audio')])

const WORK: readonly (readonly [path: string, request: Omit<RawRequest, 'path'>, dialect: RefusalBody])[] = [
  [CHAT_PATH, { body: chatText('Hi') }, inChat],
  [SPEECH_PATH, { body: speechText('Hi') }, inChat],
  [TRANSCRIPTIONS, { body: RECORDING, headers: MULTIPART }, inChat],
  [TRANSLATIONS, { body: RECORDING, headers: MULTIPART }, inChat],
  [MESSAGES, { body: messageText('Hi') }, inMessages],
  [COUNT_TOKENS, { body: messageText('Hi') }, inMessages],
  [DOCUMENTS, { body: '{}' }, inTasks],
  [VIDEOS, { body: '{}' }, inTasks],
]

describe('A caller who has no requests left', () => {
  it.each(WORK)('reads why, whose limit it is and when it is reset in the words of %s', async (path, request, body) => {
    await (await lab.chat('spent')).text()
    const answer = await askAs('spent', lab.gateway, { path, ...request })
    const seconds = answer.headers['retry-after'] ?? ''
    expect(Number(seconds)).toBeGreaterThan(30)
    expect(Number(seconds)).toBeLessThanOrEqual(60)
    const limit = 'The limit of 1 requests per minute of this API key (key:spent)'
    const text = `${limit} is used up. It is reset in ${seconds} s.`
    expect(answer.status).toBe(429)
    expect(JSON.parse(answer.text)).toEqual(body({ message: text, ...BY_MINUTE }))
    expect(answer.headers['content-type']).toBe('application/json')
    expect(limitHeaders(answer)).toEqual({
      'retry-after': seconds,
      'x-gateway-limit': `requestsPerMinute; scope=key:spent; reset=${seconds}`,
      ...shownLimit(path, 'requests', 1, 0),
    })
  })
})

describe('A caller who has as many requests under way as it may', () => {
  const READS: typeof WORK = [
    ['/imggen/task/1/fetch', { method: 'GET' }, inImages],
    ['/imggen/task/1/image-seed', { method: 'GET' }, inImages],
    [`${VIDEOS}/1`, { method: 'GET' }, inTasks],
  ]
  const controller = new AbortController()
  let hanging: Promise<unknown>

  beforeAll(async () => {
    hanging = lab.chat('full', '#hang', {}, controller.signal).catch(() => 'aborted')
    await eventually(async () => (await lab.limits('full')).limits['concurrency']?.in_use === 1)
  })
  afterAll(() => {
    controller.abort()
    return hanging
  })

  it.each([...WORK, ...READS])('reads so in the words of %s, and has used no request', async (path, request, body) => {
    const answer = await askAs('full', lab.gateway, { path, ...request })
    const text =
      'The limit of 1 requests at once of this API key (key:full) is reached. Try again once one of them has ended.'
    expect(answer.status).toBe(429)
    expect(JSON.parse(answer.text)).toEqual(body({ message: text, code: 'concurrency_limit_exceeded', taskCode: 1303 }))
    expect(limitHeaders(answer)).toEqual({
      'retry-after': '1',
      'x-gateway-limit': 'concurrency; scope=key:full; reset=1',
      ...shownLimit(path, 'requests', 50, 49),
    })
  })
})

describe('A task route', () => {
  it('tells what is left with whatever it answers', async () => {
    for (const [path, left] of [
      [VIDEOS, 2],
      [DOCUMENTS, 1],
    ] as const) {
      const answer = await askAs('task', lab.gateway, { path, body: '{}' })
      expect(answer.status).toBe(400)
      expect(answer.headers).toMatchObject(shownLimit(path, 'requests', 3, left))
    }
  })
})
