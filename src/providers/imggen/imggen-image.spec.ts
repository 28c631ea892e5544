import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { cpuMs } from '../../../test/support/eventually.js'
import {
  IMAGE_ID,
  IMAGE_TASK,
  type ImggenLab,
  json,
  SECRET,
  startImggenLab,
} from '../../../test/support/provider-labs.js'
import { attemptOf, GENEROUS_TIMEOUTS, newCall, targetOf } from '../../../test/support/raw-upstream.js'
import { GatewayError } from '../../core/errors.js'
import { JsonBody } from '../../core/json-body.js'
import { UpstreamClient } from '../../upstream/upstream-client.js'
import { ImggenImageProvider } from './imggen-image.js'
import { IMAGE_TASK_FIELDS, imageTaskOf, UNKNOWN_TASK } from './imggen-wire.js'

let lab: ImggenLab
beforeAll(async () => {
  lab = await startImggenLab()
})
beforeEach(() => {
  lab.newRequests()
})
afterAll(() => lab.close())

describe.each([
  ['fetch', 'fetch'],
  ['seed', 'image-seed'],
] as const)('A %s', (question, path) => {
  const shown = (status: number, description: string, code?: number) =>
    json(status, JSON.stringify({ code, description, result: null, properties: {} }))

  it.each([
    ['its task is in the wrong state', shown(400, 'no hash', 4), { kind: 'invalid_request', message: 'no hash' }],
    ['a code in a success', shown(200, 'no hash', 4), { kind: 'invalid_request', message: 'no hash' }],
    ['a window that waits', shown(200, 'confirm it', 21), { kind: 'invalid_request', message: 'confirm it' }],
    [
      'a banned word',
      shown(200, 'no', 24),
      { kind: 'invalid_request', message: 'no', code: 'content_policy_violation' },
    ],
    ['no code', shown(422, 'not so'), { kind: 'invalid_request', message: 'not so' }],
    ['no word', json(400, ''), { kind: 'invalid_request', message: 'The upstream refused the request (status 400).' }],
    [
      'words with secrets',
      shown(400, `no ${SECRET} at https://inner.example.com/x`, 4),
      { kind: 'invalid_request', message: 'no [key] at [address]' },
    ],
  ])('with %s is the caller’s fault, in the upstream’s words', async (_what, answer, expected) => {
    lab.server.answerWith(answer)
    const failure = await lab.provider[question](IMAGE_ID, lab.context()).catch((reason: unknown) => reason)
    if (!(failure instanceof GatewayError)) throw new Error('it was expected to fail')
    const { kind, message, details } = failure
    const { code } = details
    expect(code === undefined ? { kind, message } : { kind, message, code }).toEqual(expected)
    expect(details.attempt).toEqual({ phase: 'answered' })
  })

  it.each([
    ['a failure', shown(200, 'a secret of theirs', 9)],
    ['a failure with a status', shown(500, 'a secret of theirs', 4)],
    ['an unknown code', shown(200, 'a secret of theirs', 77)],
    ['no account to draw with', shown(200, 'no available account instance', 3)],
    ['no account to draw with, as 404', shown(404, '无可用的账号实例', 3)],
    ['a page', json(200, '<html>', { 'content-type': 'text/html; charset=utf-8' })],
    ['a page with 404', json(404, ' <!doctype html>', { 'content-type': 'text/plain' })],
    ['a page with 400', json(400, '<html>')],
    ['a picture', json(200, Buffer.from('89504e470d0a1a0a', 'hex'), { 'content-type': 'image/png' })],
    ['broken JSON', json(200, IMAGE_TASK.slice(0, 40))],
    ['a list', json(200, `[${IMAGE_TASK}]`)],
    ['another text', json(200, '"1259687673"')],
    ['an empty object', json(200, '{}')],
    ['a framework’s error', json(200, '{"timestamp":1,"status":500,"error":"a secret of theirs"}')],
    ['a redirection', json(302, '', { location: '/elsewhere' })],
    ['a status alone', json(502, '')],
    ['an answer without end', json(200, `{"id":"1","x":"${' '.repeat(16 * 1024 * 1024)}"}`)],
  ])('with %s is the upstream’s failure', async (_what, answer) => {
    lab.server.answerWith(answer)
    const failure = await lab.provider[question](IMAGE_ID, lab.context()).catch((reason: unknown) => reason)
    expect(failure).toMatchObject({
      kind: 'upstream_failed',
      message: expect.not.stringContaining('theirs'),
      details: { attempt: { phase: 'answered', channelError: true } },
    })
    expect(failure).not.toMatchObject({ details: { retryable: false } })
  })

  it.each([
    [401, '', 'upstream_failed', 'unauthorized'],
    [401, '{"description":"no","type":"new_api_error","code":4}', 'upstream_failed', 'unauthorized'],
    [402, '', 'upstream_failed', 'rate_limited'],
    [403, '{"code":4,"description":"task_no_found"}', 'upstream_failed', 'forbidden_model'],
    [429, '{"code":30,"description":"quota"}', 'upstream_failed', 'rate_limited'],
    [200, '{"code":30,"description":"quota"}', 'upstream_failed', 'rate_limited'],
    [429, '<html>', 'rate_limited', 'rate_limited'],
    [429, '', 'rate_limited', 'rate_limited'],
    [429, '{"description":"slow down","type":"new_api_error","code":4}', 'rate_limited', 'rate_limited'],
    [429, '{"code":9,"description":"busy"}', 'rate_limited', 'rate_limited'],
    [200, '{"code":23,"description":"queue full"}', 'rate_limited', 'rate_limited'],
    [400, '{"code":22,"description":"queued"}', 'rate_limited', 'rate_limited'],
  ])('with %i %j is %s, or %s by the caller’s own key', async (status, body, channels, callers) => {
    const answer = json(status, body, { 'retry-after': '7' })
    lab.server.answerWith(answer, answer)
    const own = await lab.provider[question](IMAGE_ID, lab.context()).catch((reason: unknown) => reason)
    expect(own).toMatchObject({ kind: channels, details: { attempt: { phase: 'answered', channelError: true } } })
    if (channels === 'rate_limited') expect(own).toMatchObject({ details: { retryAfterSeconds: 7 } })
    const passed = await lab.provider[question](IMAGE_ID, lab.context({ callersKey: true })).catch(
      (reason: unknown) => reason,
    )
    expect(passed).toMatchObject({ kind: callers, details: { attempt: { phase: 'answered' } } })
    expect(passed).not.toMatchObject({ details: { attempt: { channelError: true } } })
  })

  it('that is cut off may be repeated: it has changed nothing', async () => {
    lab.server.answerWith((response) => response.destroy())
    await expect(lab.provider[question](IMAGE_ID, lab.context())).rejects.toMatchObject({
      kind: 'upstream_failed',
      details: { attempt: { phase: 'sent', channelError: true }, retryable: true },
    })
  })

  it('ends at the upstream when the caller leaves', async () => {
    const call = newCall()
    const closed = new Promise((resolve) => {
      lab.server.answerWith((response) => {
        response.once('close', resolve)
        call.disconnect.abort()
      })
    })
    await expect(lab.provider[question](IMAGE_ID, lab.context(attemptOf(call)))).rejects.toMatchObject({
      kind: 'caller_left',
    })
    await closed
  })

  it('sends the secret in its own header and nothing else of note', async () => {
    lab.server.answerWith(json(200, IMAGE_TASK))
    const task = await lab.provider[question](IMAGE_ID, lab.context())
    expect(task).toMatchObject({ status: 'SUCCESS', progress: '100%', isTerminal: true })
    expect(task?.object).toContain('"n":9223372036854775807')
    const sent = lab.newRequests()
    expect(sent).toMatchObject([{ method: 'GET', path: `/mj/task/${IMAGE_ID}/${path}`, body: Buffer.alloc(0) }])
    expect(sent[0]?.headers).toEqual({
      host: `127.0.0.1:${lab.server.port}`,
      connection: 'keep-alive',
      'mj-api-secret': SECRET,
      accept: 'application/json',
      'accept-encoding': 'identity',
    })
  })

  it.each([
    ['Bearer word', 'word'],
    ['bearer  word', 'word'],
    ['bearerword', 'bearerword'],
  ])('sends the secret %j as %j', async (credentials, sent) => {
    lab.server.answerWith(json(200, IMAGE_TASK))
    await lab.provider[question](IMAGE_ID, lab.context({ credentials }))
    expect(lab.newRequests()[0]?.headers['mj-api-secret']).toBe(sent)
  })

  it.each([
    [{ pathPrefix: '/mj-fast/mj' }, '', '/mj-fast/mj/task'],
    [{ pathPrefix: '' }, '/base', '/base/task'],
    [{}, '/base', '/base/mj/task'],
  ])('with the options %j behind %j goes to %s', async (options, pathPrefix, start) => {
    lab.server.answerWith(json(200, IMAGE_TASK))
    await lab.provider[question]('a/b?c#d', lab.context({ options, target: targetOf(lab.server.port, { pathPrefix }) }))
    expect(lab.newRequests()[0]?.path).toBe(`${start}/a%2Fb%3Fc%23d/${path}`)
  })

  it.each([
    [200, ''],
    [200, ' \r\n'],
    [200, 'null'],
    [204, ''],
    [404, ''],
    [404, '{"type":"about:blank","title":"Not Found","status":404}'],
    [404, '{"code":3,"description":"the task is gone","result":null}'],
    [400, '{"description":"task_no_found","type":"upstream_error","code":4}'],
    [400, '{"description":"task_not_found","type":"upstream_error","code":4}'],
    [400, '{"error":{"message":"Task does not exist"}}'],
    [200, '{"code":3,"description":"The task does not exist","result":null}'],
    [200, '{"code":4,"description":"任务不存在"}'],
    [200, '{"code":4,"description":"关联任务不存在或已失效"}'],
  ])('that is answered with %i %j finds nothing', async (status, body) => {
    lab.server.answerWith((response) => response.writeHead(status).end(status === 204 ? undefined : body))
    expect(await lab.provider[question](IMAGE_ID, lab.context())).toBeUndefined()
  })
})

const SEEDED = '{"code":1,"description":"success","result":"1259687673"}'

describe('An answer with the seed alone', () => {
  it.each([
    [SEEDED, '1259687673'],
    ['{"code":1,"result":1259687673123456789012}', '1259687673123456789012'],
  ])('%s is put into the task, which is fetched for it', async (answer, seed) => {
    lab.server.answerWith(json(200, answer), json(200, IMAGE_TASK))
    const task = await lab.provider.seed(IMAGE_ID, lab.context())
    expect(task?.object).toContain(`"properties":{"finalPrompt":"a kite --v 6","seed":"${seed}"}`)
    expect(lab.newRequests().map(({ path }) => path)).toEqual([
      `/mj/task/${IMAGE_ID}/image-seed`,
      `/mj/task/${IMAGE_ID}/fetch`,
    ])
  })

  it('of a task that is gone by then finds nothing', async () => {
    lab.server.answerWith(json(200, SEEDED), json(404, ''))
    expect(await lab.provider.seed(IMAGE_ID, lab.context())).toBeUndefined()
  })

  it('fails with the fetch of the task', async () => {
    lab.server.answerWith(json(200, SEEDED), json(401, ''))
    await expect(lab.provider.seed(IMAGE_ID, lab.context())).rejects.toMatchObject({ kind: 'upstream_failed' })
  })

  it.each(['""', 'null', '[]', '{}', 'true'])('that is %s is no seed', async (result) => {
    lab.server.answerWith(json(200, `{"code":1,"result":${result}}`))
    await expect(lab.provider.seed(IMAGE_ID, lab.context())).rejects.toMatchObject({ kind: 'upstream_failed' })
    expect(lab.newRequests()).toHaveLength(1)
  })

  it('is no task', async () => {
    lab.server.answerWith(json(200, SEEDED))
    await expect(lab.provider.fetch(IMAGE_ID, lab.context())).rejects.toMatchObject({ kind: 'upstream_failed' })
  })
})

describe('The patience for a seed', () => {
  const hasty = () =>
    targetOf(lab.server.port, { poolKey: 'hasty', timeouts: { ...GENEROUS_TIMEOUTS, firstByteMs: 20, idleMs: 20 } })

  it('is its own: other answers are waited for as the channel says', async () => {
    // A fetch that is given up tells when the seed, asked for before it, would have been given up too.
    let release: () => void = () => undefined
    lab.server.answerWith(
      (response) => {
        release = () => response.writeHead(200).end(IMAGE_TASK)
      },
      () => undefined,
    )
    const seed = lab.provider.seed(IMAGE_ID, lab.context({ target: hasty() }))
    await expect(lab.provider.fetch(IMAGE_ID, lab.context({ target: hasty() }))).rejects.toMatchObject({
      kind: 'upstream_timeout',
      details: { retryable: true },
    })
    release()
    expect(await seed).toMatchObject({ status: 'SUCCESS' })
  })

  it('exceeds the minute that the upstream takes, and yields to a longer one of the channel', async () => {
    const asked: object[] = []
    class Noting extends UpstreamClient {
      override send(...parameters: Parameters<UpstreamClient['send']>): ReturnType<UpstreamClient['send']> {
        asked.push(parameters[1].timeouts)
        return lab.client.send(...parameters)
      }
    }
    const noted = new ImggenImageProvider(new Noting())
    lab.server.answerWith(json(200, IMAGE_TASK), json(200, IMAGE_TASK))
    await noted.seed(IMAGE_ID, lab.context({ target: hasty() }))
    await noted.seed(
      IMAGE_ID,
      lab.context({ target: targetOf(lab.server.port, { timeouts: { ...GENEROUS_TIMEOUTS, firstByteMs: 90_000 } }) }),
    )
    expect(asked).toMatchObject([
      { firstByteMs: 75_000, idleMs: 75_000, connectMs: 20_000, totalMs: 20_000 },
      { firstByteMs: 90_000 },
    ])
  })
})

describe('The words for a task that is not known', () => {
  it.each(['task_not_exist', 'Task is not found', 'unknown task', '任务不存在', '未找到该任务', '找不到编号为1的任务'])(
    'are told in %j',
    (words) => {
      expect(UNKNOWN_TASK.test(words)).toBe(true)
    },
  )

  it.each(['', 'the task failed', '任务失败'])('are not told in %j', (words) => {
    expect(UNKNOWN_TASK.test(words)).toBe(false)
  })

  it('are looked for in a long text in time proportional to its length', () => {
    const startedAtMs = cpuMs()
    expect(UNKNOWN_TASK.test('未找到'.repeat(30_000))).toBe(false)
    expect(cpuMs() - startedAtMs).toBeLessThan(300)
  })
})

const taskOf = (text: string, seed?: string) => imageTaskOf(JsonBody.parse(Buffer.from(text)), '77', seed)
const EMPTY = { string: '', integer: 0, array: [], object: {} }

describe('A task object', () => {
  it('that is complete keeps every byte', () => {
    const values = { string: '"\\u00e9\\/"', integer: '1.0e3', array: '[ {"emoji": null} ]', object: '{ "n":1.50}' }
    const members = Object.entries(IMAGE_TASK_FIELDS).map(([name, type]) => `"${name}" : ${values[type]}`)
    const text = `{ ${[...members, '"shardId":9223372036854775807'].reverse().join(' ,\n')} }`
    expect(taskOf(text).object).toBe(text)
    expect(taskOf(` ${text}\r\n`).object).toBe(text)
  })

  it('with nothing but a status gets every other field, in the order of the specification', () => {
    const { object } = taskOf('{"status":"SUBMITTED"}')
    const names = Object.keys(IMAGE_TASK_FIELDS).filter((name) => name !== 'status')
    expect(Object.keys(JSON.parse(object) as object)).toEqual(['status', ...names])
  })

  it.each(Object.entries(IMAGE_TASK_FIELDS).filter(([name]) => name !== 'id' && name !== 'status'))(
    'without %s, or with null there, has an empty %s',
    (name, type) => {
      for (const text of ['{"id":"1","status":"SUCCESS"}', `{"id":"1","${name}":null,"status":"SUCCESS"}`]) {
        expect((JSON.parse(taskOf(text).object) as Record<string, unknown>)[name]).toEqual(EMPTY[type])
      }
    },
  )

  it.each(['{"status":"SUCCESS"}', '{"id":null,"status":"SUCCESS"}'])(
    'without an id has the one that was asked for: %s',
    (text) => {
      expect(taskOf(text).object).toContain('"id":"77"')
    },
  )

  it('keeps the places of what it mends', () => {
    expect(taskOf('{"id":"1", "startTime" : null , "x":[1.0], "status":null}').object).toMatch(
      /^\{"id":"1", "startTime" : 0 , "x":\[1\.0\], "status":"","action":"",/,
    )
  })

  it('has texts and numbers where they belong, whatever a relay makes of them', () => {
    const { object, progress } = taskOf(
      '{"id":17500000000001234567,"status":"IN_PROGRESS","progress":31,"submitTime":"1750000000000","startTime":"","buttons":"","properties":"","finishTime":"soon"}',
    )
    expect(object).toContain('"id":"17500000000001234567"')
    expect(object).toContain('"progress":"31","submitTime":1750000000000,"startTime":0,"buttons":[],"properties":{}')
    // What cannot be read is shown as it came.
    expect(object).toContain('"finishTime":"soon"')
    expect(progress).toBe('31')
  })

  it.each([
    ['NOT_START', false],
    ['SUBMITTED', false],
    ['MODAL', false],
    ['IN_PROGRESS', false],
    ['SUCCESS', true],
    ['FAILURE', true],
    ['CANCEL', true],
    ['LATER_WORD', false],
  ])('that is %s is at its end: %s', (status, isTerminal) => {
    expect(taskOf(JSON.stringify({ id: '1', status, progress: '', imageUrl: 'https://x/y' }))).toMatchObject({
      status,
      progress: '',
      imageUrl: 'https://x/y',
      isTerminal,
    })
  })
})

describe('A seed', () => {
  it('joins the other properties, which keep their text', () => {
    const { object } = taskOf('{"id":"1","properties":{ "nonce" :12345678901234567890, "flags":1.0 },"z":1}', '42"')
    expect(object).toContain('"properties":{ "nonce" :12345678901234567890, "flags":1.0,"seed":"42\\"" },"z":1')
  })

  it.each(['{"id":"1"}', '{"id":"1","properties":null}', '{"id":"1","properties":{}}', '{"id":"1","properties":[]}'])(
    'makes the properties where there are none: %s',
    (text) => {
      expect(JSON.parse(taskOf(text, '42').object)).toMatchObject({ properties: { seed: '42' } })
    },
  )

  it('takes the place of another', () => {
    expect(taskOf('{"id":"1","properties":{"seed":"1","a":2}}', '42').object).toContain('{"seed":"42","a":2}')
  })
})
