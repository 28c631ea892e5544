import { once } from 'node:events'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { spoolsLeft } from '../support/audio-uploads.js'
import { type DocumentLab, startDocumentLab } from '../support/document-lab.js'
import { answerOf, encodedAs, GZIPPED_PAGE, PAGE, PAGE_HEAD, type TargetAnswer } from '../support/document-target.js'
import { eventually } from '../support/eventually.js'

const IDLE_MS = 400
/** The promise: what was begun for a caller who has left ends within a second. */
const PROMISED_MS = 1_000

let lab: DocumentLab

beforeAll(async () => {
  lab = await startDocumentLab({
    sections: {
      timeouts: { firstByteMs: IDLE_MS, idleMs: IDLE_MS },
      documents: { maximumTimeoutMs: 3000, defaultTimeoutMs: 3000, fetchesInFlight: 2 },
    },
  })
})
afterEach(async () => {
  await eventually(() => lab.target.sockets.size === 0)
  lab.target.reset()
  await eventually(() => spoolsLeft().length === 0)
})
afterAll(() => lab.close())

describe('a deadline', () => {
  it.each<readonly [string, TargetAnswer]>([
    ['before the head', () => undefined],
    ['in the middle of the head', (socket) => void socket.write('HTTP/1.1 200 OK\r\n')],
    ['in the middle of the body', (socket) => void socket.write(`${PAGE_HEAD}content-length: 99\r\n\r\n<html>`)],
    ['in the middle of a gzip', (socket) => void socket.write(encodedAs('gzip', GZIPPED_PAGE).subarray(0, -9))],
  ])('for a silence of the server ends a fetch: %s', async (_name, answer) => {
    lab.target.answers.set('/silent', answer)
    const { status, body } = await lab.parse('/silent')
    expect([status, body.code]).toEqual([504, 5002])
    expect(body.message).toBe('The server of the document did not send it in time.')
  })

  it.each([0.7, 1000])('of the caller holds for all of it, however steadily it drips: %s', async (timeout) => {
    const drips: NodeJS.Timeout[] = []
    lab.target.answers.set('/drip', (socket) => {
      socket.write(`${PAGE_HEAD}\r\n<html>`)
      drips.push(setInterval(() => socket.write('.'), 50))
    })
    const beganAtMs = performance.now()
    const reply = await lab.parse('/drip', { timeout })
    const tookMs = performance.now() - beganAtMs
    for (const drip of drips) clearInterval(drip)
    expect([reply.status, reply.body.code]).toEqual([504, 5002])
    const askedMs = timeout >= 1000 ? timeout : timeout * 1000
    expect(reply.body.message).toBe(`The document could not be read within ${askedMs} ms.`)
    expect(tookMs).toBeGreaterThanOrEqual(askedMs - 5)
    expect(tookMs).toBeLessThan(askedMs + 1500)
  })

  it('holds over redirects as well', async () => {
    const hop: TargetAnswer = (socket, head) => {
      const next = Number(/\d+/.exec(head)?.[0]) + 1
      setTimeout(() => {
        socket.end(`HTTP/1.1 302 Found\r\nlocation: /slow${next}\r\ncontent-length: 0\r\n\r\n`)
      }, 200)
    }
    for (let at = 0; at < 5; at++) lab.target.answers.set(`/slow${at}`, hop)
    expect((await lab.parse('/slow0', { timeout: 0.5 })).status).toBe(504)
  })

  it('of no time at all is one as well', async () => {
    lab.target.answers.set('/', answerOf(PAGE))
    expect((await lab.parse('/', { timeout: 1e-9 })).status).toBe(504)
  })

  it('longer than the operator allows is cut to that', async () => {
    const drips: NodeJS.Timeout[] = []
    lab.target.answers.set('/drip', (socket) => {
      socket.write(`${PAGE_HEAD}\r\n<html>`)
      drips.push(setInterval(() => socket.write('.'), 50))
    })
    const { status, body } = await lab.parse('/drip', { timeout: 999 })
    for (const drip of drips) clearInterval(drip)
    expect([status, body.message]).toEqual([504, 'The document could not be read within 3000 ms.'])
  })
})

describe('a caller who leaves', () => {
  it.each<readonly [string, TargetAnswer]>([
    ['before the server answers', () => undefined],
    ['in the middle of the body', (socket) => void socket.write(`${PAGE_HEAD}content-length: 99\r\n\r\n<html>`)],
  ])('%s ends the fetch within a second', async (name, answer) => {
    lab.target.answers.set('/left', answer)
    const requestId = `documents-left-${name.replaceAll(' ', '-')}`
    const caller = await lab.ask('/left', requestId)
    await eventually(() => lab.target.heads.length === 1)
    const [socket] = lab.target.sockets
    if (socket === undefined) throw new Error('nobody asked')
    const closed = once(socket, 'close')
    const leftAtMs = performance.now()
    caller.socket.destroy()
    await closed
    expect(performance.now() - leftAtMs).toBeLessThan(PROMISED_MS)
    expect(await lab.gateway.logLine(requestId)).toMatchObject({ status: 499 })
  })
})

describe('more fetches at once than the operator allows', () => {
  it('are refused at once, and told when to come back', async () => {
    lab.target.answers.set('/1', () => undefined)
    lab.target.answers.set('/2', () => undefined)
    lab.target.answers.set('/3', answerOf(PAGE))
    const callers = [await lab.ask('/1', 'documents-fetch-1'), await lab.ask('/2', 'documents-fetch-2')]
    await eventually(() => lab.target.heads.length === 2)
    const { status, headers, body } = await lab.parse('/3')
    expect([status, body.code, headers['retry-after']]).toEqual([503, 5001, expect.stringMatching(/^\d+$/)])
    expect(lab.target.heads).toHaveLength(2)
    for (const { socket } of callers) socket.destroy()
    await eventually(() => lab.target.sockets.size === 0)
    expect((await lab.parse('/3')).status).toBe(200)
  })
})
