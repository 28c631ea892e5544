import { setTimeout as pause } from 'node:timers/promises'
import { isSignedWith } from '@multi-model-gateway/sandbox/tasks/webhook-signature.js'
import { CallbackReceiver } from '../support/callback-receiver.js'
import type { Random } from './random.js'
import { digestOf, type SoakLedger, type TaskObject } from './soak-ledger.js'

/** What becomes of a callback. On some paths nothing ever arrives well, so that events are given up. */
const MOODS = { takes: 62, fails: 15, resets: 10, isSlow: 6, isTooSlow: 5, isGone: 2 } as const
type Mood = keyof typeof MOODS

const PATHS = { hook: 92, dead: 8 } as const
const SLOW_MS = 150

export interface ReceiverOptions {
  readonly ledger: SoakLedger
  readonly random: Random
  readonly secret: string
  /** Of the address, so that it can be looked for in logs. */
  readonly canary: string
  /** What the gateway gives an attempt. */
  readonly timeoutMs: number
  readonly nowMs: () => number
}

/** A receiver that fails a share of its callbacks in all ways there are, and notes each. */
export class FailingReceiver {
  isWell = false

  private constructor(
    private readonly receiver: CallbackReceiver,
    private readonly options: ReceiverOptions,
  ) {
    receiver.answer = (response, { path, headers, body }) => {
      // The base class keeps everything; a long run need not.
      receiver.received.length = 0
      const mood = this.mood(path)
      this.note(headers as Record<string, string>, body, mood)
      if (mood === 'takes') response.writeHead(204).end()
      else if (mood === 'fails') response.writeHead(500).end()
      else if (mood === 'isGone') response.writeHead(410).end()
      else if (mood === 'resets') response.socket?.resetAndDestroy()
      else {
        const delayMs = mood === 'isSlow' ? SLOW_MS : options.timeoutMs * 2
        void pause(delayMs, undefined, { ref: false }).then(() => response.writeHead(204).end())
      }
    }
  }

  static async start(options: ReceiverOptions): Promise<FailingReceiver> {
    return new FailingReceiver(await CallbackReceiver.start(), options)
  }

  get host(): string {
    return this.receiver.host
  }

  readonly url = (random: Random): string =>
    this.receiver.url(`/${random.weighted(PATHS)}?token=${this.options.canary}`)

  close(): Promise<void> {
    return this.receiver.close()
  }

  private mood(path: string): Mood {
    if (path.startsWith('/dead')) return 'fails'
    return this.isWell ? 'takes' : this.options.random.weighted(MOODS)
  }

  private note(headers: Record<string, string>, body: string, mood: Mood): void {
    const task = JSON.parse(body) as TaskObject
    this.options.ledger.callbacks.push({
      webhookId: headers['webhook-id'] ?? '',
      taskId: task.task_id,
      status: task.task_status,
      updatedAt: task.updated_at,
      digest: digestOf(task),
      isSigned: isSignedWith(this.options.secret, headers, body, this.options.nowMs()),
      answer: mood === 'takes' || mood === 'isSlow' ? 'taken' : mood === 'isGone' ? 'gone' : 'failed',
    })
  }
}
