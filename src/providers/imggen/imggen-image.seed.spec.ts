import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { IMAGE_ID, IMAGE_TASK, type ImggenLab, startImggenLab } from '../../../test/support/imggen-lab.js'
import { json } from '../../../test/support/provider-labs.js'
import { GENEROUS_TIMEOUTS, targetOf } from '../../../test/support/raw-upstream.js'
import { UpstreamClient } from '../../upstream/upstream-client.js'
import { ImggenImageProvider } from './imggen-image.js'

let lab: ImggenLab
beforeAll(async () => {
  lab = await startImggenLab()
})
beforeEach(() => {
  lab.newRequests()
})
afterAll(() => lab.close())

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
