import { once } from 'node:events'
import type { Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { spoolsLeft } from '../support/audio-uploads.js'
import { NEWER, OTHER_CALLER, seenOf, startDocumentCacheLab } from '../support/document-cache-lab.js'
import { type DocumentLab } from '../support/document-lab.js'
import { answerOf, PAGE } from '../support/document-target.js'
import { eventually } from '../support/eventually.js'
import { sendRaw } from '../support/raw-http.js'

const PROMISED_MS = 1_000

let lab: DocumentLab

beforeAll(async () => {
  lab = await startDocumentCacheLab()
})
afterEach(async () => {
  lab.target.reset()
  await eventually(() => spoolsLeft().length === 0)
})
afterAll(() => lab.close())

let pages = 0

describe('the same page asked for several times at once', () => {
  /** A page that is sent when the test says so. */
  function heldPage(): { readonly path: string; readonly asked: Promise<Socket> } {
    const path = `/held-${++pages}`
    const asked = new Promise<Socket>((resolve) => {
      lab.target.answers.set(path, resolve)
    })
    return { path, asked }
  }

  /** What was sent before is taken before what is sent later. */
  const allHeard = () => sendRaw(lab.gateway.url, { method: 'GET', path: '/health/live' })

  it('is fetched once for all of them', async () => {
    const { path, asked } = heldPage()
    const replies = Array.from({ length: 8 }, () => lab.parse(path))
    const socket = await asked
    // Whoever comes later still joins: the answer is not there yet.
    replies.push(lab.parse(path))
    await allHeard()
    socket.write(answerOf(PAGE))
    expect(await Promise.all(replies.map(seenOf))).toEqual(replies.map(() => [0, 'Kettles']))
    expect(lab.target.heads).toHaveLength(1)
  })

  it('fails for all of them when it fails, and for nobody afterwards', async () => {
    const { path, asked } = heldPage()
    const replies = [lab.parse(path), lab.parse(path)]
    const socket = await asked
    await allHeard()
    socket.destroy()
    const statuses = (await Promise.all(replies)).map(({ status }) => status)
    expect(statuses).toEqual([502, 502])
    lab.target.answers.set(path, answerOf(PAGE))
    expect(await seenOf(lab.parse(path))).toEqual([0, 'Kettles'])
  })

  it('goes on for those who stay, and ends with the last one who leaves', async () => {
    const { path, asked } = heldPage()
    const first = await lab.ask(path, 'documents-shared-1')
    const socket = await asked
    const second = await lab.ask(path, 'documents-shared-2')
    const third = await lab.ask(path, 'documents-shared-3')
    await allHeard()
    first.socket.destroy()
    expect(await lab.gateway.logLine('documents-shared-1')).toMatchObject({ status: 499 })
    expect(socket.destroyed).toBe(false)
    second.socket.destroy()
    await lab.gateway.logLine('documents-shared-2')
    expect(socket.destroyed).toBe(false)
    const leftAtMs = performance.now()
    const closed = once(socket, 'close')
    third.socket.destroy()
    await closed
    expect(performance.now() - leftAtMs).toBeLessThan(PROMISED_MS)
  })

  it('comes in time for one whose patience is longer than another’s', async () => {
    const { path, asked } = heldPage()
    const hasty = lab.parse(path, { timeout: 0.3 })
    const patient = lab.parse(path, { timeout: 20 })
    const socket = await asked
    expect((await hasty).body).toMatchObject({ code: 5002, message: expect.stringContaining('300 ms') })
    socket.write(answerOf(PAGE))
    expect(await seenOf(patient)).toEqual([0, 'Kettles'])
    expect(lab.target.heads).toHaveLength(1)
  })

  it('is fetched for each caller by itself, who may not see the same', async () => {
    const { path, asked } = heldPage()
    const mine = lab.parse(path)
    const socket = await asked
    lab.target.answers.set(path, answerOf(NEWER))
    expect(await seenOf(lab.parse(path, {}, OTHER_CALLER))).toEqual([0, 'Teapots'])
    socket.write(answerOf(PAGE))
    expect(await seenOf(mine)).toEqual([0, 'Kettles'])
  })

  it('is not fetched once more for those who left before', async () => {
    const { path, asked } = heldPage()
    const left = await lab.ask(path, 'documents-left-early')
    const socket = await asked
    left.socket.destroy()
    await once(socket, 'close')
    lab.target.answers.set(path, answerOf(PAGE))
    expect(await seenOf(lab.parse(path))).toEqual([0, 'Kettles'])
  })
})
