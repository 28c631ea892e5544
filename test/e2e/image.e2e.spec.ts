import { describe, expect, it } from '@jest/globals'
import {
  askForImage,
  imagePath,
  IMGGEN_SECRET,
  type ImggenGateway,
  type ImggenGatewayOptions,
  startImggenGateway,
} from '../support/imggen-gateway.js'
import { withLab } from '../support/provider-gateways.js'

const inLab = (options: ImggenGatewayOptions, run: (lab: ImggenGateway) => Promise<void>): Promise<void> =>
  withLab(startImggenGateway(options), async (lab) => {
    await run(lab)
    expect([...lab.simulator.violations, ...lab.second.violations]).toEqual([])
    expect(lab.gateway.logText()).not.toContain(IMGGEN_SECRET)
  })

/** Specification: a finished four-image task carries these. */
const NINE_BUTTONS = [
  ...[1, 2, 3, 4].map((index) => `upsample::${index}`),
  'reroll::0',
  ...[1, 2, 3, 4].map((index) => `variation::${index}`),
]

const UNKNOWN = { code: 1203, message: 'There is no such task.', description: 'There is no such task.' }

describe.each(['N', 'T', 'A'] as const)('A task of the variant %s', (variant) => {
  it('is shown as it is at every step', () =>
    inLab({ simulator: { variant } }, async ({ gateway, simulator }) => {
      const id = simulator.submit('a red kite', { state: 'mine' })
      const shown: unknown[] = []
      for (let step = 0; step < 7; step++) {
        const { status, headers, body } = await askForImage(gateway, imagePath(id))
        expect([status, headers.get('content-type')]).toEqual([200, 'application/json'])
        expect(body).toMatchObject({ id, action: 'IMAGINE', prompt: 'a red kite', state: 'mine', maskBase64: '' })
        for (const time of ['submitTime', 'startTime', 'finishTime']) expect(Number.isInteger(body[time])).toBe(true)
        shown.push(`${String(body['status'])} ${String(body['progress'])}`)
        simulator.advance(id)
      }
      expect(shown).toEqual([
        'NOT_START ',
        'SUBMITTED 0%',
        'IN_PROGRESS 0%',
        'IN_PROGRESS 31%',
        'IN_PROGRESS 62%',
        'IN_PROGRESS 93%',
        'SUCCESS 100%',
      ])
    }))

  it('that has failed says why', () =>
    inLab({ simulator: { variant } }, async ({ gateway, simulator }) => {
      const id = simulator.submit('a kite #fail')
      simulator.finish(id)
      const { body } = await askForImage(gateway, imagePath(id))
      expect(body).toMatchObject({ status: 'FAILURE', progress: '', imageUrl: '', buttons: [] })
      expect(body['failReason']).toMatch(/\w/)
    }))

  it.each(['empty', 'null'] as const)('that is unknown (%s) is 404 for every question', (unknown) =>
    inLab({ simulator: { variant, unknown } }, async ({ gateway, simulator }) => {
      for (const question of ['fetch', 'image-seed', 'events']) {
        const { status, body, headers } = await askForImage(gateway, imagePath('1750000000000999', question))
        expect(status).toBe(404)
        expect(body).toEqual({ ...UNKNOWN, request_id: headers.get('x-request-id') })
      }
      expect(simulator.requests).toHaveLength(3)
    }),
  )

  it.each(['result', 'task'] as const)('has its seed among its properties (the upstream answers with the %s)', (seed) =>
    inLab({ simulator: { variant, seed } }, async ({ gateway, simulator }) => {
      const id = simulator.submit('a kite')
      simulator.finish(id)
      const task = (await askForImage(gateway, imagePath(id))).body
      const { status, body } = await askForImage(gateway, imagePath(id, 'image-seed'))
      expect(status).toBe(200)
      const properties = task['properties'] as object
      expect(body).toEqual({ ...task, properties: { ...properties, seed: expect.stringMatching(/^\d+$/) } })
    }),
  )
})

describe('A finished task', () => {
  it('carries its nine buttons, its picture, and what no specification names', () =>
    inLab({}, async ({ gateway, simulator }) => {
      const id = simulator.submit('a kite')
      simulator.finish(id)
      const { body, text } = await askForImage(gateway, imagePath(id))
      const names = (body['buttons'] as { customId: string }[]).map(
        ({ customId }) => /^MJ::JOB::(\w+::\d)::[0-9a-f-]{36}(?:::SOLO)?$/.exec(customId)?.[1],
      )
      expect(names).toEqual(NINE_BUTTONS)
      expect(body['imageUrl']).toContain(simulator.url)
      expect(text).toContain('"shardId":9223372036854775807')
    }))
})

describe('A seed', () => {
  it('of a task that has not succeeded is refused in the upstream’s words', () =>
    inLab({}, async ({ gateway, simulator }) => {
      const { status, body } = await askForImage(gateway, imagePath(simulator.submit('a kite'), 'image-seed'))
      expect(status).toBe(400)
      expect(body).toMatchObject({ code: 1201, description: 'The task has no message hash' })
    }))

  it('may take longer than other answers of its channel', () =>
    inLab({ channel: { timeouts: { firstByteMs: 30 } } }, async ({ gateway, simulator }) => {
      const id = simulator.submit('a kite')
      simulator.finish(id)
      // Node's own timers of this length are exact to a second.
      simulator.queueFault({ kind: 'delay', ms: 1500 })
      expect((await askForImage(gateway, imagePath(id, 'image-seed'))).status).toBe(200)
      simulator.queueFault('hang')
      expect(await askForImage(gateway, imagePath(id))).toMatchObject({ status: 504, body: { code: 5002 } })
    }))
})

describe('Several channels', () => {
  it('are asked in turn, and the one that knew a task is asked first from then on', () =>
    inLab({ withSecond: true }, async ({ gateway, simulator, second }) => {
      const id = second.submit('a kite')
      second.finish(id)
      for (const question of ['fetch', 'fetch', 'image-seed']) {
        expect((await askForImage(gateway, imagePath(id, question))).status).toBe(200)
      }
      expect(simulator.requests).toHaveLength(1)
      expect(await askForImage(gateway, imagePath('1'))).toMatchObject({ status: 404, body: UNKNOWN })
      expect([simulator.requests.length, second.requests.length]).toEqual([2, 5])
    }))

  it.each([
    ['500', 502, 5000],
    ['429', 429, 1302],
    ['reset', 502, 5000],
    ['401', 502, 5000],
    ['quota', 502, 5000],
  ] as const)('of which one fails with %s and the other knows nothing: the failure counts', (fault, status, code) =>
    inLab({ withSecond: true }, async ({ gateway, simulator, second }) => {
      simulator.queueFault(fault)
      expect(await askForImage(gateway, imagePath('1'))).toMatchObject({ status, body: { code } })
      expect(second.requests).toHaveLength(1)
    }),
  )

  it('of which one fails and the other knows the task: the task counts', () =>
    inLab({ withSecond: true }, async ({ gateway, simulator, second }) => {
      simulator.queueFault('500')
      expect((await askForImage(gateway, imagePath(second.submit('a kite')))).status).toBe(200)
    }))
})
