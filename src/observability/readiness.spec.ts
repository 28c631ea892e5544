import { describe, expect, it } from '@jest/globals'
import { Readiness } from './readiness.js'

describe('Readiness', () => {
  it('is ready once it is announced, and not any more once the drain begins', () => {
    const readiness = new Readiness()
    expect(readiness).toMatchObject({ isReady: false, word: 'starting' })
    readiness.announceReady()
    expect(readiness).toMatchObject({ isReady: true, word: 'ready' })
    readiness.announceDraining()
    expect(readiness).toMatchObject({ isReady: false, isDraining: true, word: 'draining' })
  })

  it('is not ready any more while it serves on, which probes cannot tell from the drain', () => {
    const readiness = new Readiness()
    readiness.announceReady()
    expect(readiness.isLeaving).toBe(false)
    readiness.announceLeaving()
    expect(readiness).toMatchObject({ isReady: false, isLeaving: true, isDraining: false, word: 'draining' })
    readiness.announceDraining()
    expect(readiness).toMatchObject({ isReady: false, isLeaving: true, isDraining: true, word: 'draining' })
  })

  it('tells listeners when the drain begins, and others when its grace time is over', () => {
    const readiness = new Readiness()
    const told: string[] = []
    readiness.onGraceOver(() => told.push('grace over'))
    readiness.onDraining(() => told.push('draining'))
    readiness.announceLeaving()
    expect(told).toEqual([])
    readiness.announceDraining()
    expect(told).toEqual(['draining'])
    readiness.announceGraceOver()
    expect(told).toEqual(['draining', 'grace over'])
  })

  it('is not ready without its store, and says so unless there is a better reason', () => {
    const readiness = new Readiness()
    readiness.announceStoreLost()
    expect(readiness).toMatchObject({ isReady: false, word: 'starting' })
    readiness.announceReady()
    expect(readiness).toMatchObject({ isReady: false, word: 'store_unreachable' })
    readiness.announceStoreBack()
    expect(readiness).toMatchObject({ isReady: true, word: 'ready' })
  })
})
