import { describe, expect, it } from '@jest/globals'
import { ask, askAndWait, channelOf, times } from '../support/breaker-lab.js'
import { CHAT_PATH, chatText } from '../support/chat-bodies.js'
import { eventually } from '../support/eventually.js'
import { readAndLeave } from '../support/aborted-calls.js'
import { type P1Gateway, withP1Gateway } from '../support/p1-gateway.js'
import { SHORT_TIMEOUTS } from '../support/upstream-faults.js'

const breaking = (failures: number, coolDownMs = 200): object => ({ sections: { breaker: { failures, coolDownMs } } })
const TWO = { withSecond: true }

const served = ({ simulator, second }: P1Gateway): number[] => [simulator.requests.length, second.requests.length]
const isHalfOpen = ({ gateway }: P1Gateway) => eventually(() => channelOf(gateway, 'first').state === 'half_open')

describe('The breaker of a channel', () => {
  it('opens after so many failures in a row, cools down longer each time, and is closed by a success', async () => {
    await withP1Gateway({ ...TWO, ...breaking(2) }, async (lab) => {
      const { gateway, simulator } = lab
      for (const fault of ['500', '500'] as const) {
        simulator.queueFault(fault)
        expect((await ask(gateway)).status).toBe(200)
      }
      expect((await ask(gateway)).status).toBe(200)
      expect(served(lab)).toEqual([2, 3])
      expect(channelOf(gateway, 'first')).toMatchObject({ state: 'open', consecutiveFailures: 2, waiting: 0 })
      await isHalfOpen(lab)
      simulator.queueFault('500')
      await ask(gateway)
      expect(channelOf(gateway, 'first').state).toBe('open')
      expect(channelOf(gateway, 'first').openForMs).toBeGreaterThan(200)
      await isHalfOpen(lab)
      await ask(gateway)
      expect(channelOf(gateway, 'first')).toMatchObject({ state: 'closed', consecutiveFailures: 0, openForMs: 0 })
      expect(simulator.requests).toHaveLength(4)
    })
  })

  it('lets one of many concurrent calls probe the channel while the others go elsewhere', async () => {
    await withP1Gateway({ ...TWO, ...breaking(1) }, async (lab) => {
      lab.simulator.queueFault('500')
      await ask(lab.gateway)
      await isHalfOpen(lab)
      lab.simulator.queueFault({ kind: 'delay', ms: 300 })
      const answers = await Promise.all(times(8, () => ask(lab.gateway)))
      expect(answers.every(({ status }) => status === 200)).toBe(true)
      expect(served(lab)).toEqual([2, 8])
      expect(channelOf(lab.gateway, 'first').state).toBe('closed')
    })
  })

  it('can be probed again at once when the caller of the probe leaves', async () => {
    await withP1Gateway({ ...TWO, ...breaking(1) }, async (lab) => {
      const { gateway, simulator } = lab
      simulator.queueFault('500')
      await ask(gateway)
      await isHalfOpen(lab)
      simulator.queueFault('hang')
      const arrived = simulator.nextRequest()
      const leave = askAndWait(gateway)
      await arrived
      expect((await ask(gateway)).status).toBe(200)
      expect(served(lab)).toEqual([2, 2])
      leave()
      await isHalfOpen(lab)
      await ask(gateway)
      expect(served(lab)).toEqual([3, 2])
      expect(channelOf(gateway, 'first').state).toBe('closed')
    })
  })

  it('is open for as long as a busy upstream says, whatever was under way succeeds', async () => {
    await withP1Gateway({ ...TWO, ...breaking(9) }, async ({ gateway, simulator }) => {
      simulator.queueFault({ kind: 'delay', ms: 200 })
      simulator.queueFault('429')
      const arrived = simulator.nextRequest()
      const slow = ask(gateway)
      await arrived
      expect((await ask(gateway)).status).toBe(200)
      expect((await slow).status).toBe(200)
      expect(channelOf(gateway, 'first').state).toBe('open')
      const { openForMs } = channelOf(gateway, 'first')
      expect(openForMs).toBeGreaterThan(1000)
      expect(openForMs).toBeLessThanOrEqual(2000)
    })
  })

  it('never opens by faults of callers, or by callers who leave', async () => {
    await withP1Gateway({ ...TWO, ...breaking(1) }, async (lab) => {
      const { gateway, simulator } = lab
      for (const fault of ['400', '404', '413', '422'] as const) {
        simulator.queueFault(fault)
        expect((await ask(gateway)).status).toBeGreaterThanOrEqual(400)
      }
      for (const fault of ['hang', 'stall'] as const) {
        simulator.queueFault(fault)
        const [arrived, aborted] = [simulator.nextRequest(), simulator.nextAbort()]
        const leave = askAndWait(gateway)
        await arrived
        leave()
        await aborted
      }
      await readAndLeave(gateway.url, { path: CHAT_PATH, body: chatText('#chunks=50 #hold=4', { stream: true }) })
      await simulator.idle()
      expect(channelOf(gateway, 'first')).toMatchObject({ state: 'closed', consecutiveFailures: 0 })
      await eventually(() => channelOf(gateway, 'first').waiting === 0)
      expect(served(lab)).toEqual([7, 0])
    })
  })

  it('never keeps callers from the last channel', async () => {
    await withP1Gateway(breaking(1, 60_000), async ({ gateway, simulator }) => {
      for (const fault of ['500', '503'] as const) {
        simulator.queueFault(fault)
        expect((await ask(gateway)).status).toBe(502)
      }
      expect((await ask(gateway)).status).toBe(200)
      expect(channelOf(gateway, 'first').state).toBe('closed')
    })
  })
})

describe('An answer that breaks off after its first byte', () => {
  it.each(['cut', 'cleancut', 'errorframe', 'stall'] as const)(
    'counts as a failure of its channel (%s)',
    async (fault) => {
      await withP1Gateway({ ...TWO, ...breaking(2, 60_000), channel: SHORT_TIMEOUTS }, async (lab) => {
        for (const failures of [1, 2]) {
          lab.simulator.queueFault(fault)
          const answer = await ask(lab.gateway, '#chunks=20', { stream: true })
          expect(answer).toMatchObject({ status: 200, complete: true })
          expect(channelOf(lab.gateway, 'first').consecutiveFailures).toBe(failures)
        }
        await ask(lab.gateway)
        expect(served(lab)).toEqual([2, 1])
      })
    },
  )

  it('opens the breaker again at once when it was the probe', async () => {
    await withP1Gateway({ ...TWO, ...breaking(3) }, async (lab) => {
      for (const fault of ['500', '500', '500'] as const) {
        lab.simulator.queueFault(fault)
        await ask(lab.gateway)
      }
      await isHalfOpen(lab)
      lab.simulator.queueFault('cut')
      await ask(lab.gateway, '#chunks=20', { stream: true })
      expect(channelOf(lab.gateway, 'first')).toMatchObject({ state: 'open', consecutiveFailures: 4 })
    })
  })
})
