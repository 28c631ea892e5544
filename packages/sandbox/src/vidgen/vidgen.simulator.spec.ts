import { createHmac } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { parseBuffer } from 'music-metadata'
import {
  DAY_MS,
  HEADERS,
  IMAGES,
  refused,
  TEXT,
  type VidgenAnswer,
  VidgenSimulatorLab,
} from '../../test/task-simulator-labs.js'
import { startCallbackReceiver } from '../tasks/webhooks.js'
import { mp4File } from './mp4-file.js'
import { VidgenRejection } from './vidgen-errors.js'
import { judgeAccess, startVidgenSimulator, type VidgenAccess } from './vidgen.simulator.js'

const KEYS = { accessKey: 'ak_demo', secretKey: 'sk_demo' }
const NOW_MS = 1_750_000_000_000
const GOOD = { iss: 'ak_demo', exp: 1_750_001_800, nbf: 1_749_999_995 }
const encoded = (value: object | string): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

function token(claims: object | string, { secret = 'sk_demo', header = { alg: 'HS256', typ: 'JWT' } } = {}): string {
  const signed = `${encoded(header)}.${encoded(claims)}`
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
}

/** The code of the refusal; 0 when let in. */
function codeOf(authorization: string | undefined, access: VidgenAccess | undefined = KEYS, nowMs = NOW_MS): number {
  try {
    judgeAccess(authorization, access, nowMs)
    return 0
  } catch (error) {
    if (!(error instanceof VidgenRejection)) throw error
    return error.code
  }
}

describe('a caller of the video upstream', () => {
  it('is let in with the token of the published example', () => {
    const head = 'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9'
    const claims = 'eyJpc3MiOiJha19kZW1vIiwiZXhwIjoxNzUwMDAxODAwLCJuYmYiOjE3NDk5OTk5OTV9'
    expect(codeOf(`Bearer ${head}.${claims}.AmU4sggkniBKONqHrKawfRGJ3_oDhICITPfEG2hkSqQ`)).toBe(0)
    expect(token(GOOD)).toBe(`${head}.${claims}.AmU4sggkniBKONqHrKawfRGJ3_oDhICITPfEG2hkSqQ`)
  })

  it.each([
    ['without the header', undefined, 1001],
    ['with an empty header', ' ', 1001],
    ['with another scheme', `Basic ${token(GOOD)}`, 1002],
    ['with no token', 'Bearer', 1002],
    ['with something that is no token', 'Bearer ak_demo|sk_demo', 1002],
    ['with a token of four parts', `Bearer ${token(GOOD)}.x`, 1002],
    ['with claims that are no JSON', `Bearer ${token('claims')}`, 1002],
    ['with another algorithm', `Bearer ${token(GOOD, { header: { alg: 'none', typ: 'JWT' } })}`, 1002],
    ['without an end', `Bearer ${token({ iss: 'ak_demo', nbf: GOOD.nbf })}`, 1002],
    ['signed with another key', `Bearer ${token(GOOD, { secret: 'other' })}`, 1000],
    ['of another account', `Bearer ${token({ ...GOOD, iss: 'ak_other' })}`, 1000],
    ['too early', `Bearer ${token({ ...GOOD, nbf: NOW_MS / 1000 + 1 })}`, 1003],
    ['too late', `Bearer ${token({ ...GOOD, exp: NOW_MS / 1000 })}`, 1004],
  ])('%s is refused', (_, authorization, code) => {
    expect(codeOf(authorization)).toBe(code)
  })

  it('is let in until the last millisecond and from the first', () => {
    const authorization = `Bearer ${token(GOOD)}`
    expect(codeOf(authorization, KEYS, GOOD.nbf * 1000)).toBe(0)
    expect(codeOf(authorization, KEYS, GOOD.nbf * 1000 - 1)).toBe(1003)
    expect(codeOf(authorization, KEYS, GOOD.exp * 1000 - 1)).toBe(0)
    expect(codeOf(authorization, KEYS, GOOD.exp * 1000)).toBe(1004)
  })

  it('is let in with the one bearer, where there is one', () => {
    expect(codeOf('Bearer right', { bearer: 'right' })).toBe(0)
    expect(codeOf('Bearer wrong', { bearer: 'right' })).toBe(1000)
  })
})

describe('the vidgen simulator', () => {
  const lab = new VidgenSimulatorLab()
  const { create, get, post, read, start } = lab

  beforeEach(() => lab.startAnew())
  afterEach(() => lab.close())

  describe('a create', () => {
    it('answers with the task in the envelope', async () => {
      const response = await post({ prompt: 'a red kite', external_task_id: 'order-77' })
      expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8'])
      expect(await response.json()).toEqual({
        code: 0,
        message: 'SUCCEED',
        request_id: expect.stringMatching(/^Cj[0-9a-f]{32}$/),
        data: {
          task_id: expect.stringMatching(/^83\d{17}$/),
          task_info: { external_task_id: 'order-77' },
          task_status: 'submitted',
          created_at: 1_750_000_000_000,
          updated_at: 1_750_000_000_000,
        },
      })
    })

    it('is remembered with what it was made from, but for the images', async () => {
      const id = await create({ image_list: [{ image: 'https://example.com/a.png' }], external_task_id: 'e-1' }, IMAGES)
      expect(lab.simulator.creates).toMatchObject([
        { id, kind: 'multi-image2video', externalTaskId: 'e-1', fields: { prompt: 'a red kite' } },
      ])
      expect(lab.simulator.creates[0]?.fields).not.toHaveProperty('image_list')
    })

    it('is refused with 1201 when its external id came before, in either kind, and counted', async () => {
      await create({ external_task_id: 'e-1' })
      const again = await post({ prompt: 'x', external_task_id: 'e-1' })
      expect(await again.json()).toMatchObject({ code: 1201, message: 'external_task_id is used already' })
      const image_list = [{ image: 'https://example.com/a.png' }]
      expect((await post({ prompt: 'x', image_list, external_task_id: 'e-1' }, IMAGES)).status).toBe(400)
      expect(lab.simulator.creates).toHaveLength(1)
      expect(lab.simulator.duplicates).toEqual(['e-1', 'e-1'])
    })

    it('without an external id is never a repeat', async () => {
      await create()
      await create({ external_task_id: '' })
      expect(lab.simulator.creates).toHaveLength(2)
    })

    it('is refused with the field it names', async () => {
      const response = await post({ prompt: 'x', duration: 5 })
      expect(response.status).toBe(400)
      expect(await response.json()).toMatchObject({ code: 1201, message: 'duration must be one of 5, 10' })
    })

    it('is refused with 1200 unless it is a JSON object that says so', async () => {
      expect(await refused(await post('{"prompt":'))).toEqual([400, 1200])
      expect(await refused(await post('[]'))).toEqual([400, 1200])
      expect(await refused(await post({ prompt: 'x' }, TEXT, { 'content-type': 'text/plain' }))).toEqual([400, 1200])
    })
  })

  describe('routes and keys', () => {
    it('are judged before anything else', async () => {
      expect(await refused(await post({}, TEXT, { authorization: 'Bearer other' }))).toEqual([401, 1000])
      expect(await refused(await fetch(lab.simulator.url + TEXT))).toEqual([401, 1001])
      expect(await refused(await post({ prompt: 'x' }, '/v1/videos/image2video'))).toEqual([404, 1202])
      expect(await refused(await post({ prompt: 'x' }, '/v2/videos/text2video'))).toEqual([404, 1202])
      expect(await refused(await fetch(lab.simulator.url + TEXT, { method: 'DELETE', headers: HEADERS }))).toEqual([
        404, 1202,
      ])
    })

    it('that know tokens judge them by real time, however the clock stands', async () => {
      await lab.simulator.close()
      lab.simulator = await startVidgenSimulator({ accessKey: 'ak', secretKey: 'sk' }, { clock: lab.clock })
      expect(await refused(await post({ prompt: 'x' }))).toEqual([401, 1002])
      const nowSeconds = Math.floor(Date.now() / 1000)
      const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
      const claims = { iss: 'ak', exp: nowSeconds + 1800, nbf: nowSeconds - 5 }
      const signed = `${part({ alg: 'HS256', typ: 'JWT' })}.${part(claims)}`
      const authorization = `Bearer ${signed}.${createHmac('sha256', 'sk').update(signed).digest('base64url')}`
      expect((await post({ prompt: 'x' }, TEXT, { authorization })).status).toBe(200)
      lab.clock.advance(365 * DAY_MS)
      expect((await post({ prompt: 'x' }, TEXT, { authorization })).status).toBe(200)
    })

    it('record a relay that talks too much', async () => {
      await fetch(lab.simulator.url + TEXT, { headers: { ...HEADERS, 'x-forwarded-for': '10.0.0.1' } })
      expect(lab.simulator.violations).toEqual(['forwarded header: x-forwarded-for'])
    })
  })

  describe('a task', () => {
    it('proceeds by the clock: submitted, processing, succeed', async () => {
      const id = await create()
      expect(await read(id)).toMatchObject({ task_status: 'submitted' })
      lab.clock.advance(1999)
      expect(await read(id)).toMatchObject({ task_status: 'submitted', updated_at: 1_750_000_000_000 })
      lab.clock.advance(1)
      expect(await read(id)).toMatchObject({ task_status: 'processing', updated_at: 1_750_000_002_000 })
      lab.clock.advance(4000)
      expect(await read(id)).toMatchObject({ task_status: 'succeed', updated_at: 1_750_000_006_000 })
    })

    it('has no result before its end, then the whole one, with an undocumented field', async () => {
      const id = await create({ external_task_id: 'e-1', mode: 'pro', duration: '10' })
      expect(await read(id)).not.toHaveProperty('task_result')
      lab.clock.advance(6000)
      const text = await (await fetch(`${lab.simulator.url}${TEXT}/${id}`, { headers: HEADERS })).text()
      // A number beyond a double.
      expect(text).toContain('"trace_number":9223372036854775807}')
      expect((JSON.parse(text) as VidgenAnswer).data).toMatchObject({
        task_id: id,
        task_status: 'succeed',
        task_status_msg: '',
        task_info: { external_task_id: 'e-1' },
        task_result: { videos: [{ id: `${id}-0`, url: `${lab.simulator.url}/media/${id}.mp4`, duration: '10.1' }] },
        watermark_info: { enabled: false },
        final_unit_deduction: '7',
        created_at: 1_750_000_000_000,
        updated_at: 1_750_000_006_000,
      })
      expect(text).not.toContain('watermark_url')
    })

    it('can be read by its external id, under its own kind only', async () => {
      const id = await create({ external_task_id: '0123456789ab.order:77 ä' })
      expect(await read(encodeURIComponent('0123456789ab.order:77 ä'))).toMatchObject({ task_id: id })
      expect(await get(`${IMAGES}/${id}`)).toMatchObject({ code: 1203 })
      expect(await get(`${TEXT}/unknown`)).toEqual({
        code: 1203,
        message: expect.any(String),
        request_id: expect.any(String),
      })
      expect(await get(`${TEXT}/%ff`)).toMatchObject({ code: 1200 })
    })

    it('moves by hand alone when a test wants it so', async () => {
      await lab.simulator.close()
      await start({ taskMs: 'manual' })
      const [first, second] = [await create({ external_task_id: 'one' }), await create()]
      lab.clock.advance(DAY_MS)
      lab.simulator.advance('one')
      expect([await read(first), await read(second)]).toMatchObject([
        { task_status: 'processing' },
        { task_status: 'submitted' },
      ])
      lab.simulator.advance()
      expect([await read(first), await read(second)]).toMatchObject([
        { task_status: 'succeed' },
        { task_status: 'processing' },
      ])
      lab.simulator.settle(second, 'failed')
      expect(await read(second)).toMatchObject({ task_status: 'failed', final_unit_deduction: '0' })
      lab.simulator.advance()
      expect(await read(first)).toMatchObject({ task_status: 'succeed' })
      lab.simulator.show(first, 'processing')
      expect(await read(first)).toMatchObject({ task_status: 'processing' })
      lab.simulator.forget(first)
      expect(await get(`${TEXT}/${first}`)).toMatchObject({ code: 1203 })
      expect(() => {
        lab.simulator.advance(first)
      }).toThrow(/no task/)
      expect(lab.simulator.creates).toHaveLength(2)
    })
  })

  describe('a list', () => {
    it('holds the tasks of its kind, newest first, page by page', async () => {
      const ids: string[] = []
      for (let number = 0; number < 5; number += 1) ids.unshift(await create())
      await create({ image_list: [{ image: 'https://example.com/a.png' }] }, IMAGES)
      const page = async (query: string): Promise<string[]> =>
        ((await get(TEXT + query)).data as { task_id: string }[]).map(({ task_id }) => task_id)
      expect(await page('')).toEqual(ids)
      expect(await page('?pageNum=1&pageSize=2')).toEqual(ids.slice(0, 2))
      expect(await page('?pageNum=3&pageSize=2')).toEqual(ids.slice(4))
      expect(await page('?pageNum=1000&pageSize=500')).toEqual([])
    })

    it('has thirty entries unless another number is asked for', async () => {
      for (let number = 0; number < 31; number += 1) await create()
      expect((await get(TEXT)).data).toHaveLength(30)
    })

    it.each(['pageNum=0', 'pageNum=1001', 'pageNum=x', 'pageSize=0', 'pageSize=501', 'pageSize=1.5', 'pageSize='])(
      'refuses %s',
      async (query) => {
        const [name] = query.split('=')
        expect(await get(`${TEXT}?${query}`)).toMatchObject({ code: 1201, message: expect.stringMatching(`^${name} `) })
      },
    )
  })

  describe('videos', () => {
    it('can be got for thirty days; the task stays', async () => {
      const id = await create({ aspect_ratio: '1:1' })
      const url = `${lab.simulator.url}/media/${id}.mp4`
      expect((await fetch(url)).status).toBe(404)
      lab.clock.advance(6000)
      const response = await fetch(url)
      const bytes = Buffer.from(await response.arrayBuffer())
      expect([response.status, response.headers.get('content-type')]).toEqual([200, 'video/mp4'])
      expect(bytes.toString('latin1', 4, 12)).toBe('ftypisom')
      lab.clock.advance(30 * DAY_MS - 1)
      expect((await fetch(url)).status).toBe(200)
      lab.clock.advance(1)
      expect((await fetch(url)).status).toBe(404)
      expect(await read(id)).toMatchObject({ task_status: 'succeed', task_result: { videos: [{ url }] } })
    })

    it('have a marked copy when one was asked for', async () => {
      const [plain, marked] = [await create(), await create({ watermark_info: { enabled: true } })]
      lab.clock.advance(6000)
      const task = await read(marked)
      const url = `${lab.simulator.url}/media/${marked}-watermark.mp4`
      expect(task).toMatchObject({
        watermark_info: { enabled: true },
        task_result: { videos: [{ watermark_url: url }] },
      })
      expect((await fetch(url)).status).toBe(200)
      expect((await fetch(`${lab.simulator.url}/media/${plain}-watermark.mp4`)).status).toBe(404)
    })

    it('must not be sent a credential', async () => {
      await fetch(`${lab.simulator.url}/media/1.mp4`, { headers: HEADERS })
      expect(lab.simulator.violations).toEqual(['credential sent to a video link: authorization'])
    })
  })

  describe('callbacks', () => {
    it('tell every change after the create, in the older flat form', async () => {
      const receiver = await startCallbackReceiver()
      const callback_url = `${receiver.url}/hook`
      const id = await create({ callback_url, external_task_id: 'e-1', watermark_info: { enabled: true } })
      lab.clock.advance(6000)
      await lab.simulator.callbacksSent()
      const [processing, done] = receiver.received.map(({ body }) => JSON.parse(body) as object)
      expect(processing).toEqual({
        task_id: id,
        task_status: 'processing',
        task_status_msg: '',
        created_at: 1_750_000_000_000,
        updated_at: 1_750_000_002_000,
        task_info: { external_task_id: 'e-1', parent_video: { id: '', url: '', duration: '' } },
        task_result: { images: [], videos: [] },
      })
      expect(done).toMatchObject({
        task_status: 'succeed',
        final_unit_deduction: '2',
        task_result: { videos: [{ id: `${id}-0`, url: `${lab.simulator.url}/media/${id}.mp4`, duration: '5.1' }] },
      })
      expect(JSON.stringify(done)).not.toContain('watermark_url')
      expect(receiver.received).toHaveLength(2)
      expect(lab.simulator.callbacks.map(({ status }) => status)).toEqual([200, 200])
      await receiver.close()
    })

    it('come signed, twice and last one first when a test wants it so', async () => {
      const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
      await lab.simulator.close()
      await start({ callbacks: { secret, duplicate: true, outOfOrder: true } })
      const receiver = await startCallbackReceiver({ secret })
      await create({ callback_url: `${receiver.url}/hook` })
      lab.clock.advance(6000)
      await lab.simulator.callbacksSent()
      const seen = receiver.received.map(({ body, verified }) => [
        (JSON.parse(body) as { task_status: string }).task_status,
        verified,
      ])
      const [processing, succeed] = [
        ['processing', true],
        ['succeed', true],
      ]
      expect(seen).toEqual([succeed, succeed, processing, processing])
      await receiver.close()
    })
  })

  describe('a word in a prompt', () => {
    it.each([
      ['#1301', 400, 1301],
      ['#1303', 429, 1303],
      ['#1102', 429, 1102],
      ['#1304', 429, 1304],
      ['#5000', 500, 5000],
      ['#5001', 503, 5001],
      ['#5002', 504, 5002],
      ['#429', 429, 1302],
      ['#quota', 429, 1102],
      ['#503', 503, 5001],
    ])('%s is refused with %i and %i, and makes no task', async (word, status, code) => {
      expect(await refused(await post({ prompt: `${word} a red kite` }))).toEqual([status, code])
      expect(lab.simulator.creates).toHaveLength(0)
    })

    it('may stand anywhere when it is one of this upstream', async () => {
      expect(await refused(await post({ prompt: 'a kite #1301' }))).toEqual([400, 1301])
    })

    it('#html answers a page with 502', async () => {
      const response = await post({ prompt: '#html' })
      expect([response.status, response.headers.get('content-type')]).toEqual([502, 'text/html'])
    })

    it('#fail makes a task that fails, with the words of a moderation', async () => {
      const id = await create({ prompt: 'a kite #fail' })
      lab.clock.advance(6000)
      const task = await read(id)
      expect(task).toMatchObject({ task_status: 'failed', task_status_msg: expect.stringMatching(/risk control/) })
      expect(task).not.toHaveProperty('task_result')
    })

    it('#stuck makes a task that never ends', async () => {
      const id = await create({ prompt: '#stuck' })
      lab.clock.advance(100 * DAY_MS)
      lab.simulator.advance(id)
      expect(await read(id)).toMatchObject({ task_status: 'processing' })
    })

    it('#slow answers a create in pieces', async () => {
      const started = performance.now()
      await create({ prompt: '#slow' })
      expect(performance.now() - started).toBeGreaterThan(300)
    })

    it('#lost makes a task and resets the connection', async () => {
      await expect(post({ prompt: '#lost', external_task_id: 'e-1' })).rejects.toThrow('fetch failed')
      expect(await read('e-1')).toMatchObject({ task_status: 'submitted' })
    })

    it('#lost5000 makes a task and answers 5000', async () => {
      expect(await refused(await post({ prompt: '#lost5000', external_task_id: 'e-1' }))).toEqual([500, 5000])
      expect(await read('e-1')).toMatchObject({ task_status: 'submitted' })
    })

    it('#cut makes a task and breaks its answer off, #reset makes none', async () => {
      await expect(create({ prompt: '#cut', external_task_id: 'e-1' })).rejects.toThrow('terminated')
      await expect(post({ prompt: '#reset' })).rejects.toThrow('fetch failed')
      expect(lab.simulator.creates.map(({ externalTaskId }) => externalTaskId)).toEqual(['e-1'])
    })
  })

  describe('a queued fault', () => {
    it('befalls a query as well', async () => {
      const id = await create()
      for (const fault of ['503', 'errorframe', 'html'] as const) lab.simulator.queueFault(fault)
      const status = async (): Promise<number> =>
        (await fetch(`${lab.simulator.url}${TEXT}/${id}`, { headers: HEADERS })).status
      expect([await status(), await status(), await status(), await status()]).toEqual([503, 500, 200, 200])
    })
  })
})

/** The types of the boxes in their order; containers are followed by what is in them. */
function boxTypes(bytes: Buffer): string[] {
  const types: string[] = []
  for (let at = 0; at < bytes.length;) {
    const size = bytes.readUInt32BE(at)
    const type = bytes.toString('latin1', at + 4, at + 8)
    types.push(type)
    if (['moov', 'trak', 'mdia', 'minf', 'stbl'].includes(type))
      types.push(...boxTypes(bytes.subarray(at + 8, at + size)))
    at += size
  }
  return types
}

describe('the file of a video', () => {
  const file = mp4File({ durationMs: 5100, width: 1280, height: 720 })

  it('is a few hundred bytes of boxes without a gap', () => {
    expect(boxTypes(file).join(' ')).toBe(
      'ftyp moov mvhd trak tkhd mdia mdhd hdlr minf vmhd dinf stbl stsd stts stsc stco stsz',
    )
    expect(file.length).toBeLessThan(1000)
  })

  it('is a video to a reader', async () => {
    const { format } = await parseBuffer(file, { mimeType: 'video/mp4' })
    expect(format).toMatchObject({ container: 'isom/iso2/mp41', hasVideo: true })
  })

  it('has its duration and the size of the picture in its headers', () => {
    const movie = file.indexOf('mvhd') + 16
    expect([file.readUInt32BE(movie), file.readUInt32BE(movie + 4)]).toEqual([1000, 5100])
    const track = file.indexOf('tkhd') + 80
    expect([file.readUInt16BE(track), file.readUInt16BE(track + 4)]).toEqual([1280, 720])
  })
})
