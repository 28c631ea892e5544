import { describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
import { find, made } from '../../test/support/task-calls.js'
import { callOf, taskLab, type TaskLab, taskWorld, TEAM_A, videoChannel } from '../../test/support/task-lab.js'
import type { Caller } from '../core/caller.js'
import type { Call } from '../core/request-context.js'
import type { Task } from './task.js'

describe('Watching a task', () => {
  interface Watch {
    readonly states: string[]
    readonly call: Call
    readonly ended: Promise<void>
  }

  async function watch(lab: TaskLab, id: string, caller: Caller = TEAM_A): Promise<Watch> {
    const call = callOf(caller)
    const task = await lab.engine.find('text2video', id, call)
    const states: string[] = []
    const ended = lab.engine.watch(task as Task, call, ({ state }) => states.push(state))
    return { states, call, ended }
  }

  it('shows it at once, then every change, and ends with it', async () => {
    const lab = taskLab()
    await made(lab, 'order-1')
    const { states, ended } = await watch(lab, 'order-1')
    expect(states).toEqual(['submitted'])
    for (const state of ['processing', 'succeed'] as const) {
      lab.upstream.move(state)
      lab.clock.advance(1000)
      await find(lab, 'order-1')
      await eventually(() => states.at(-1) === state)
    }
    await ended
    expect(states).toEqual(['submitted', 'processing', 'succeed'])
  })

  it('shows changes that another replica made', async () => {
    const world = taskWorld()
    const [here, there] = [taskLab({ world, rereadMs: 1 }), taskLab({ world })]
    await made(here, 'order-1')
    const { states, ended } = await watch(here, 'order-1')
    world.upstream.move('succeed')
    await find(there, 'order-1')
    await ended
    expect(states).toEqual(['submitted', 'succeed'])
  })

  it('ends at once for a task that has ended, and when the caller leaves', async () => {
    const lab = taskLab()
    await made(lab, 'order-1')
    const leaving = await watch(lab, 'order-1')
    leaving.call.departure.announce()
    await leaving.ended
    expect(leaving.states).toEqual(['submitted'])
    lab.upstream.move('failed')
    lab.clock.advance(1000)
    const over = await watch(lab, 'order-1')
    await over.ended
    expect(over.states).toEqual(['failed'])
  })

  it('outlives a store that is away for a while', async () => {
    const lab = taskLab({ rereadMs: 1 })
    await made(lab, 'order-1')
    const { states, ended } = await watch(lab, 'order-1')
    lab.store.setReachable(false)
    const { refusals } = lab.store
    await eventually(() => refusals() > 0)
    lab.store.setReachable(true)
    lab.upstream.move('succeed')
    lab.clock.advance(1000)
    await find(lab, 'order-1')
    await ended
    expect(states).toEqual(['submitted', 'succeed'])
  })

  it('asks the upstream where only this callers key may', async () => {
    const own = { keyId: 'caller', bearer: 'ak|sk' }
    const lab = taskLab({ channels: [videoChannel('own', { credentials: 'caller' })], rereadMs: 1 })
    await made(lab, 'order-1', own)
    const { states, ended } = await watch(lab, 'order-1', own)
    lab.upstream.move('succeed')
    lab.clock.advance(1000)
    await ended
    expect(states).toEqual(['submitted', 'succeed'])
  })
})
