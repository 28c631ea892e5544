import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from '@jest/globals'
import { PollSlots } from './poll-slots.js'
import type { Task } from './task.js'

const SLOTS = 4

/** Polls that end when they are told to, and what the slots said meanwhile. */
class Polls {
  readonly running: { readonly id: string; readonly end: () => void }[] = []
  rooms = 0
  readonly slots = new PollSlots(
    () => SLOTS,
    ({ id }) =>
      new Promise((resolve) => {
        this.running.push({ id, end: resolve })
      }),
    () => {
      this.rooms++
    },
  )

  add(count: number, channelId = 'main'): void {
    for (let number = 0; number < count; number++) this.slots.add({ id: `${channelId}-${number}`, channelId } as Task)
  }

  async endOne(): Promise<void> {
    this.running.shift()?.end()
    await nextTurn()
  }
}

describe('The slots of a channel', () => {
  it('are never more than may be taken; what waits begins as they get free', async () => {
    const polls = new Polls()
    polls.add(6)
    expect(polls.running.map(({ id }) => id)).toEqual(['main-0', 'main-1', 'main-2', 'main-3'])
    await polls.endOne()
    expect(polls.running.map(({ id }) => id)).toEqual(['main-1', 'main-2', 'main-3', 'main-4'])
  })

  it('are no concern of another channel', () => {
    const polls = new Polls()
    polls.add(6)
    polls.add(1, 'other')
    expect(polls.running.at(-1)?.id).toBe('other-0')
    expect(polls.slots.busyChannels()).toEqual(['main'])
  })

  it('are busy until half of them are free and nothing waits, which is said once', async () => {
    const polls = new Polls()
    polls.add(5)
    for (const [busy, rooms] of [
      [true, 0],
      [true, 0],
      [false, 1],
      [false, 1],
      [false, 1],
    ] as const) {
      await polls.endOne()
      expect([polls.slots.busyChannels().length > 0, polls.rooms]).toEqual([busy, rooms])
    }
  })

  it('give back what has not begun, and say when the rest has ended', async () => {
    const polls = new Polls()
    polls.add(5)
    expect(polls.slots.takeWaiting().map(({ id }) => id)).toEqual(['main-4'])
    let isIdle = false
    const idle = polls.slots.idle().then(() => {
      isIdle = true
    })
    for (let left = SLOTS; left > 0; left--) {
      expect(isIdle).toBe(false)
      await polls.endOne()
    }
    await idle
    await polls.slots.idle()
    expect(polls.slots.takeWaiting()).toEqual([])
  })
})
