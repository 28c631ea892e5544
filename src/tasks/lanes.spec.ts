import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from '@jest/globals'
import { Lanes } from './keyed-queue.js'

const WIDTH = 4

interface Item {
  readonly id: string
  readonly lane: string
}

/** Work that ends when it is told to, and what the lanes said meanwhile. */
class Works {
  readonly running: { readonly id: string; readonly end: () => void }[] = []
  rooms = 0
  ends = 0
  readonly lanes = new Lanes<Item>({
    laneOf: ({ lane }) => lane,
    width: () => WIDTH,
    isBusy: (running, waiting) => waiting > 0 || running * 2 > WIDTH,
    work: ({ id }) =>
      new Promise((resolve) => {
        this.running.push({ id, end: resolve })
      }),
    onEnd: (hasMadeRoom) => {
      this.ends++
      if (hasMadeRoom) this.rooms++
    },
  })

  add(count: number, lane = 'main'): void {
    for (let number = 0; number < count; number++) this.lanes.add({ id: `${lane}-${number}`, lane })
  }

  async endOne(): Promise<void> {
    this.running.shift()?.end()
    await nextTurn()
  }
}

describe('The places of a lane', () => {
  it('are never more than may be taken; what waits begins as they get free', async () => {
    const works = new Works()
    works.add(6)
    expect(works.running.map(({ id }) => id)).toEqual(['main-0', 'main-1', 'main-2', 'main-3'])
    await works.endOne()
    expect(works.running.map(({ id }) => id)).toEqual(['main-1', 'main-2', 'main-3', 'main-4'])
  })

  it('are no concern of another lane', () => {
    const works = new Works()
    works.add(6)
    works.add(1, 'other')
    expect(works.running.at(-1)?.id).toBe('other-0')
    expect(works.lanes.busy()).toEqual(['main'])
  })

  it('are enough to do until the rules say otherwise, which is said once', async () => {
    const works = new Works()
    works.add(5)
    for (const [busy, rooms] of [
      [true, 0],
      [true, 0],
      [false, 1],
      [false, 1],
      [false, 1],
    ] as const) {
      await works.endOne()
      expect([works.lanes.busy().length > 0, works.rooms]).toEqual([busy, rooms])
    }
    expect(works.ends).toBe(5)
  })

  it('give back what has not begun, and say when the rest has ended', async () => {
    const works = new Works()
    works.add(5)
    expect(works.lanes.takeWaiting().map(({ id }) => id)).toEqual(['main-4'])
    expect(works.lanes.size).toBe(WIDTH)
    let isIdle = false
    const idle = works.lanes.idle().then(() => {
      isIdle = true
    })
    for (let left = WIDTH; left > 0; left--) {
      expect(isIdle).toBe(false)
      await works.endOne()
    }
    await idle
    await works.lanes.idle()
    expect(works.lanes.takeWaiting()).toEqual([])
    expect(works.lanes.size).toBe(0)
  })
})
