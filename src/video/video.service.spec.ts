import { describe, expect, it, jest } from '@jest/globals'
import { keptTask, StandInTasks } from '../../test/support/video-stand-ins.js'
import type { ByteSink } from '../core/byte-source.js'
import type { GatewayError } from '../core/gateway-error.js'
import { Call } from '../core/request-context.js'
import type { TaskEvents } from '../dialects/task-response.js'
import type { Task } from '../tasks/task.js'
import type { Tasks } from '../tasks/tasks.js'
import { videoTaskEvents } from './task-events.js'

/** Notes what comes; `ended` resolves with how it ended. */
class Notes implements ByteSink {
  text = ''
  ended: Promise<GatewayError | undefined>
  private settle!: (error?: GatewayError) => void

  constructor() {
    this.ended = new Promise((resolve) => {
      this.settle = resolve
    })
  }

  data(chunk: Buffer): void {
    this.text += chunk.toString()
  }

  end(): void {
    this.settle()
  }

  fail(error: GatewayError): void {
    this.settle(error)
  }
}

const task = keptTask({ object: '{"n":0}' })
const changed = (count: number, state: Task['state'] = 'processing'): Task => ({
  ...task,
  state,
  object: `{"n":${count}}`,
})
const frame = (count: number): string => `event: task\ndata: {"n":${count}}\n\n`

function begun(tasks: Tasks = new StandInTasks()): { events: TaskEvents; notes: Notes; call: Call } {
  const call = new Call('req_1', 'GET', '/vidgen/v1/videos/text2video/1/events', 0)
  const notes = new Notes()
  const events = videoTaskEvents(tasks, task, call)
  events.start(notes)
  return { events, notes, call }
}

describe('The event stream of a video task', () => {
  it('gives a reader who is behind the newest object only, and the last one in any case', async () => {
    const tasks = new StandInTasks()
    const { events, notes } = begun(tasks)
    events.pause()
    tasks.announce(changed(1))
    tasks.announce(changed(2))
    expect(notes.text).toBe(frame(0))
    events.resume()
    expect(notes.text).toBe(frame(0) + frame(2))
    events.pause()
    tasks.announce(changed(3, 'succeed'))
    expect(await notes.ended).toBeUndefined()
    expect(notes.text).toBe(frame(0) + frame(2) + frame(3))
  })

  it('is kept alive every 15 s of silence, unless the reader is behind', () => {
    jest.useFakeTimers()
    try {
      const tasks = new StandInTasks()
      const { events, notes } = begun(tasks)
      jest.advanceTimersByTime(14_999)
      expect(notes.text).toBe(frame(0))
      jest.advanceTimersByTime(1)
      expect(notes.text).toBe(`${frame(0)}: keep-alive\n\n`)
      jest.advanceTimersByTime(10_000)
      tasks.announce(changed(1))
      jest.advanceTimersByTime(14_999)
      expect(notes.text).toBe(`${frame(0)}: keep-alive\n\n${frame(1)}`)
      events.pause()
      jest.advanceTimersByTime(60_000)
      expect(notes.text).toBe(`${frame(0)}: keep-alive\n\n${frame(1)}`)
      events.cancel()
      expect(jest.getTimerCount()).toBe(0)
    } finally {
      jest.useRealTimers()
    }
  })

  it('says nothing more once the caller has left', () => {
    jest.useFakeTimers()
    try {
      const tasks = new StandInTasks()
      const { notes, call } = begun(tasks)
      call.departure.announce()
      tasks.announce(changed(1))
      expect(jest.getTimerCount()).toBe(0)
      expect(notes.text).toBe(frame(0))
    } finally {
      jest.useRealTimers()
    }
  })

  it('fails when the task cannot be followed, without saying why', async () => {
    class Broken extends StandInTasks {
      override watch(): Promise<void> {
        return Promise.reject(new Error('a secret of the store'))
      }
    }
    const { notes } = begun(new Broken())
    const error = await notes.ended
    expect(error?.kind).toBe('internal')
    expect(error?.message).not.toContain('secret')
  })
})
