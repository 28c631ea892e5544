import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { IMAGE_ID, IMAGE_TASK, type ImggenLab, SECRET, startImggenLab } from '../../../test/support/imggen-lab.js'
import { json } from '../../../test/support/provider-labs.js'
import { newCall } from '../../../test/support/raw-upstream.js'
import { GatewayError } from '../../core/gateway-error.js'

let lab: ImggenLab
beforeAll(async () => {
  lab = await startImggenLab()
})
afterAll(() => lab.close())

describe.each(['fetch', 'seed'] as const)('A %s', (question) => {
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
    ['a code nobody knows', shown(200, 'a secret of theirs', 77)],
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
      details: { attempt: { phase: 'answered', channelFault: true } },
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
    [200, '{"code":23,"description":"queue full"}', 'rate_limited', 'rate_limited'],
    [400, '{"code":22,"description":"queued"}', 'rate_limited', 'rate_limited'],
  ])('with %i %j is %s, or %s by the caller’s own key', async (status, body, channels, callers) => {
    const answer = json(status, body, { 'retry-after': '7' })
    lab.server.answerWith(answer, answer)
    const own = await lab.provider[question](IMAGE_ID, lab.context()).catch((reason: unknown) => reason)
    expect(own).toMatchObject({ kind: channels, details: { attempt: { phase: 'answered', channelFault: true } } })
    if (channels === 'rate_limited') expect(own).toMatchObject({ details: { retryAfterSeconds: 7 } })
    const passed = await lab.provider[question](IMAGE_ID, lab.context({ callersKey: true })).catch(
      (reason: unknown) => reason,
    )
    expect(passed).toMatchObject({ kind: callers, details: { attempt: { phase: 'answered' } } })
    expect(passed).not.toMatchObject({ details: { attempt: { channelFault: true } } })
  })

  it('that is cut off may be repeated: it has changed nothing', async () => {
    lab.server.answerWith((response) => response.destroy())
    await expect(lab.provider[question](IMAGE_ID, lab.context())).rejects.toMatchObject({
      kind: 'upstream_failed',
      details: { attempt: { phase: 'sent', channelFault: true }, retryable: true },
    })
  })

  it('ends at the upstream when the caller leaves', async () => {
    const call = newCall()
    const closed = new Promise((resolve) => {
      lab.server.answerWith((response) => {
        response.once('close', resolve)
        call.departure.announce()
      })
    })
    await expect(lab.provider[question](IMAGE_ID, lab.context({ call }))).rejects.toMatchObject({ kind: 'caller_left' })
    await closed
  })
})
