import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { expectRefused, nested } from '../support/bad-requests.js'
import { CHAT_PATH, chatText, SPEECH_PATH, speechText } from '../support/chat-bodies.js'
import { startP1Gateway, type P1Gateway } from '../support/p1-gateway.js'
import { errorOf, sendRaw } from '../support/raw-http.js'

const LIMIT_BYTES = 20_000

let lab: P1Gateway

beforeAll(async () => {
  lab = await startP1Gateway({ sections: { limits: { jsonBodyBytes: LIMIT_BYTES } } })
})
afterEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

const GOOD: Readonly<Record<string, string>> = {
  [CHAT_PATH]: chatText('Hello'),
  [SPEECH_PATH]: speechText('Hello', { response_format: 'pcm' }),
}
const withMember = (path: string, member: string): string => (GOOD[path] ?? '').replace(/}$/, `,${member}}`)

describe.each([CHAT_PATH, SPEECH_PATH])('a body sent to %s', (path) => {
  it.each([
    ['empty', ''],
    ['not JSON', 'model=tts-1'],
    ['cut off', '{"model":"tts-1","input":'],
    ['followed by more', `${GOOD[path] ?? ''}{}`],
    ['with a trailing comma', withMember(path, '')],
    ['a list', '[]'],
    ['a string', '"Hello"'],
    ['null', 'null'],
    ['invalid UTF-8', Buffer.concat([Buffer.from('{"model":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')])],
    ['UTF-16', Buffer.from('{"model":"tts-1"}', 'utf16le')],
  ])('is refused when it is %s', async (_name, body) => {
    await expectRefused(lab, { path, body }, { status: 400, code: 'invalid_json' })
  })

  it('is refused when it is nested deeper than 64 levels, and not when it is 64 deep', async () => {
    const deep = (levels: number): string => withMember(path, `"metadata":${nested(levels - 1)}`)
    await expectRefused(lab, { path, body: deep(65) }, { status: 400, code: 'json_too_deep' })
    const brackets = withMember(path, `"metadata":${'['.repeat(9_000)}`)
    await expectRefused(lab, { path, body: brackets }, { status: 400, code: 'json_too_deep' })
    expect((await sendRaw(lab.gateway.url, { path, body: deep(64) })).text).not.toContain('json_too_deep')
  })

  it.each(['"model":"other"', '"mod\\u0065l":"other"', '"input":"x","input":"y"'])(
    'is refused when %s repeats a key',
    async (member) => {
      const param = member.includes('input') ? 'input' : 'model'
      await expectRefused(lab, { path, body: withMember(path, member) }, { status: 400, code: 'duplicate_key', param })
    },
  )

  it.each(['__proto__', 'constructor', 'prototype', '\\u005f_proto__'])(
    'is refused when it holds the key %s',
    async (key) => {
      const param = key.replace('\\u005f', '_')
      for (const member of [`"${key}":{"x":1}`, `"metadata":{"a":[{"${key}" : 1}]}`]) {
        await expectRefused(
          lab,
          { path, body: withMember(path, member) },
          { status: 400, code: 'forbidden_key', param },
        )
      }
    },
  )

  it.each([
    ['announced by its length', {}],
    ['that only shows itself while it arrives', { 'transfer-encoding': 'chunked' }],
  ])('is refused with 413 when it is too large, %s', async (_name, headers) => {
    const body = withMember(path, `"user":"${'x'.repeat(LIMIT_BYTES)}"`)
    await expectRefused(lab, { path, body, headers }, { status: 413, code: 'payload_too_large' })
  })

  it.each([
    { 'content-type': 'text/plain' },
    { 'content-type': 'application/x-www-form-urlencoded' },
    { 'content-type': 'multipart/form-data; boundary=x' },
    { 'content-type': 'application/jsonp' },
    { 'content-type': 'application/json; charset=iso-8859-1' },
    { 'content-type': undefined },
    { 'content-encoding': 'gzip' },
  ])('is refused with 415 when its headers are %j', async (headers) => {
    await expectRefused(lab, { path, body: GOOD[path] ?? '', headers }, { status: 415, code: 'unsupported_media_type' })
  })

  it.each(['application/json; charset=UTF-8', 'Application/JSON', 'application/json;charset="utf-8"'])(
    'is read when its media type is %s',
    async (type) => {
      const headers = { 'content-type': type }
      expect((await sendRaw(lab.gateway.url, { path, body: GOOD[path] ?? '', headers })).status).toBe(200)
    },
  )
})

describe('a path', () => {
  it.each([CHAT_PATH, SPEECH_PATH])('%s answers 405 and what it allows to any other method', async (path) => {
    for (const method of ['GET', 'PUT', 'DELETE', 'PATCH']) {
      const refused = { status: 405, code: 'method_not_allowed' }
      await expectRefused(lab, { method, path }, refused)
      expect((await sendRaw(lab.gateway.url, { method, path })).headers['allow']).toBe('POST')
    }
  })

  it.each([
    '/v1/unknown',
    '/',
    '/chat/completions',
    `${CHAT_PATH}/`,
    '/V1/chat/completions',
    '/v1/Chat/completions',
    '/v1//chat/completions',
    `${SPEECH_PATH}/`,
    '/v1/audio/Speech',
    '/v1/audio',
  ])('%s is unknown', async (path) => {
    await expectRefused(lab, { path, body: chatText('Hello') }, { status: 404, code: 'not_found' })
  })

  it('is found whatever its query', async () => {
    const answer = await sendRaw(lab.gateway.url, {
      path: `${CHAT_PATH}?api-version=1&x[__proto__]=1`,
      body: chatText('Hello'),
    })
    expect(answer.status).toBe(200)
    expect([...(lab.simulator.lastRequest?.query.keys() ?? [])]).toEqual([])
  })

  it('that is no URL is refused as JSON too', async () => {
    const answer = await sendRaw(lab.gateway.url, { path: '/v1/models/%E0%A4%A', method: 'GET' })
    expect(answer.status).toBe(400)
    expect(errorOf(answer)).toMatchObject({ type: 'invalid_request_error', param: null })
  })
})
