import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { IMAGE_ID, IMAGE_TASK, type ImggenLab, SECRET, startImggenLab } from '../../../test/support/imggen-lab.js'
import { json } from '../../../test/support/provider-labs.js'
import { targetOf } from '../../../test/support/raw-upstream.js'

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
