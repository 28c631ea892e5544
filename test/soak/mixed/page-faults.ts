import type { Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { answerOf, type DocumentTarget, pageOf } from '../../support/document-target.js'
import type { Random } from '../random.js'
import { Turns } from '../turns.js'

/** Pages of the web server; more than the cache of the gateway holds at once. */
const PAGES = 400
const PAGE_TEXT = 'A kettle is a vessel in which water is brought to the boil, and there are many of them. '
const SPOILT_PAGE_EACH = 10
const SLOW_MS = 300

/** What a web server does in place of sending this answer. */
type PageFault = (socket: Socket, answer: Buffer) => void

const halfOf = (answer: Buffer): Buffer => answer.subarray(0, answer.length / 2)

/** The gateway must hang up on those that fall silent: nothing here ever does. */
const PAGE_FAULTS: readonly PageFault[] = [
  // Cut: shorter than its length says.
  (socket, answer) => socket.end(halfOf(answer)),
  // Stalls in the middle.
  (socket, answer) => socket.write(halfOf(answer)),
  // Malformed: says that it is gzip, and is none.
  (socket) => socket.write(answerOf('<html>', { headers: { 'content-encoding': 'gzip' } })),
  (socket, answer) => socket.write(halfOf(answer), () => socket.resetAndDestroy()),
  // Never answers.
  () => undefined,
  // Malformed: no HTTP at all.
  (socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n'),
  (socket, answer) => void sendSlowly(socket, answer),
  // An answer of its own, which is no failure.
  (socket) => socket.write(answerOf(pageOf('Gone', PAGE_TEXT), { status: '404 Not Found' })),
]

async function sendSlowly(socket: Socket, answer: Buffer): Promise<void> {
  socket.write(halfOf(answer))
  await pause(SLOW_MS)
  // Nobody may be there any more.
  if (socket.writable) socket.write(answer.subarray(halfOf(answer).length))
}

/** Fills a web server with pages of many lengths. One fetch in ten fails on its way, whichever page it is for. */
export function layOutPages(web: DocumentTarget): void {
  const turns = new Turns(PAGE_FAULTS, SPOILT_PAGE_EACH)
  for (let page = 0; page < PAGES; page += 1) {
    const answer = answerOf(pageOf(`Page ${page}`, PAGE_TEXT.repeat(20 + (page % 200))))
    web.answers.set(`/page-${page}`, (socket) => {
      // A long run needs none of it.
      web.heads.length = 0
      const fault = turns.next()
      if (fault === undefined) socket.write(answer)
      else fault(socket, answer)
    })
  }
}

export const pagePath = (random: Random): string => `/page-${Math.floor(random.next() * PAGES)}`
