import { setTimeout as wait } from 'node:timers/promises'
import { SocketSession } from './socket-session.mjs'

const OPEN_LIMIT_MS = 20_000
const OPENED_AT_ONCE = 20
/** As the gateway asks for. */
const RETRY_AFTER_MS = 1_000
const CLOSE_LIMIT_MS = 10_000
/** When nothing has arrived for so long, what is still missing is lost. A busy machine may take longer for all of it. */
const SILENCE_LIMIT_MS = 5_000
const DRAIN_LIMIT_MS = 30_000

const sum = (values) => values.reduce((total, value) => total + value, 0)

async function openedSession(options, deadlineAtMs) {
  for (;;) {
    const session = new SocketSession(options)
    if (await session.opened) return session
    if (performance.now() + RETRY_AFTER_MS > deadlineAtMs) throw new Error('The gateway opened no session in time.')
    await wait(RETRY_AFTER_MS)
  }
}

/** Sessions that stream at once: each sends audio at a steady rate, their turns spread evenly over the gap. */
export class SocketLoad {
  sessions = []
  #failed
  #fail
  #onAudio = () => undefined

  constructor() {
    this.#failed = new Promise((_, reject) => (this.#fail = reject))
    this.#failed.catch(() => undefined)
  }

  /**
   * Opens `count` sessions, a few at once. A gateway on a slow machine sheds load for a moment after hundreds of sessions have streamed:
   * as clients do, it tries again. Rejects when one is refused otherwise, or when not all are open in time.
   */
  async open({ port, dialect, count }) {
    await this.#within(OPEN_LIMIT_MS, this.#openAll({ port, dialect }, count))
  }

  async #openAll(options, count) {
    const onAudio = () => this.#onAudio()
    const onError = (error) => this.#fail(error)
    const deadlineAtMs = performance.now() + OPEN_LIMIT_MS
    while (this.sessions.length < count) {
      const length = Math.min(OPENED_AT_ONCE, count - this.sessions.length)
      const next = Array.from({ length }, () => openedSession({ ...options, onAudio, onError }, deadlineAtMs))
      this.sessions.push(...(await Promise.all(next)))
    }
  }

  /**
   * Every session sends `framesPerSecond` for `durationMs`, catching up when the driver is late, then waits until all
   * frames are back or given up.
   * @returns {Promise<{ completed: number, sent: number, lost: number, outOfOrder: number, changed: number }>}
   *   frames that came back; `lost` never did
   */
  async stream({ framesPerSecond, durationMs }) {
    const before = this.#totals()
    await this.#within(durationMs + OPEN_LIMIT_MS, this.#sendAll(framesPerSecond, durationMs))
    await this.#allBack()
    const after = this.#totals()
    const result = Object.fromEntries(Object.keys(after).map((name) => [name, after[name] - before[name]]))
    return { ...result, completed: result.received, lost: result.sent - result.received }
  }

  async close() {
    await this.#within(CLOSE_LIMIT_MS, Promise.all(this.sessions.map((session) => session.close())))
  }

  #totals() {
    const { sessions } = this
    return {
      sent: sum(sessions.map((session) => session.sent)),
      received: sum(sessions.map((session) => session.received)),
      outOfOrder: sum(sessions.map((session) => session.faults.outOfOrder)),
      changed: sum(sessions.map((session) => session.faults.changed)),
    }
  }

  #sendAll(framesPerSecond, durationMs) {
    const { sessions } = this
    const gapMs = 1000 / framesPerSecond / sessions.length
    const total = Math.round((durationMs / 1000) * framesPerSecond) * sessions.length
    const start = performance.now()
    let sent = 0
    return new Promise((resolve) => {
      const tick = () => {
        const due = Math.min(total, Math.floor((performance.now() - start) / gapMs) + 1)
        while (sent < due) sessions[sent++ % sessions.length].sendAudio()
        if (sent === total) resolve()
        else setTimeout(tick, 1)
      }
      tick()
    })
  }

  async #allBack() {
    let silence
    const back = new Promise((resolve) => {
      silence = setTimeout(resolve, SILENCE_LIMIT_MS)
      this.#onAudio = () => {
        silence.refresh()
        if (this.sessions.every((session) => session.received >= session.sent)) resolve()
      }
      this.#onAudio()
    })
    await this.#within(DRAIN_LIMIT_MS, back).finally(() => clearTimeout(silence))
    this.#onAudio = () => undefined
  }

  /** Resolves with the result, or rejects if a session fails or the time is up. */
  async #within(limitMs, work) {
    let timer
    const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error('took too long')), limitMs)))
    try {
      return await Promise.race([work, this.#failed, late])
    } finally {
      clearTimeout(timer)
    }
  }
}
