import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { GatewayError } from '../core/gateway-error.js'
import type { TaskListener } from '../dialects/task-response.js'
import type { UpstreamImageTask } from '../providers/image.contract.js'
import { TaskWatch } from './image-watch.js'

const PAUSE_MS = 5000

const task = (status: string, progress = '', imageUrl = ''): UpstreamImageTask => ({
  status,
  progress,
  imageUrl,
  isTerminal: status === 'SUCCESS',
  object: `${status} ${progress} ${imageUrl}`.trim(),
})

/** Notes what it is told. */
class Notes implements TaskListener {
  readonly words: string[] = []

  changed({ object }: UpstreamImageTask): void {
    this.words.push(object)
  }

  ended(): void {
    this.words.push('ended')
  }

  failed({ kind }: GatewayError): void {
    this.words.push(kind)
  }
}

let answers: (UpstreamImageTask | GatewayError | Error)[]
let looks: number
let closings: number
let watch: TaskWatch

beforeEach(() => {
  jest.useFakeTimers()
  answers = []
  looks = 0
  closings = 0
  watch = new TaskWatch({
    look: () => {
      looks++
      const answer = answers.shift() ?? new Error('no look was expected')
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer)
    },
    pauseMs: () => PAUSE_MS,
    close: () => {
      closings++
    },
  })
})
afterEach(() => {
  jest.useRealTimers()
})

const pass = (milliseconds = 0): Promise<void> => jest.advanceTimersByTimeAsync(milliseconds)
const failure = (retryAfterSeconds?: number): GatewayError =>
  new GatewayError('upstream_failed', 'No.', retryAfterSeconds === undefined ? {} : { retryAfterSeconds })

describe('A watched task', () => {
  it('is told at once, at each change of status, progress or picture, and to its end', async () => {
    answers = [
      task('IN_PROGRESS'),
      task('IN_PROGRESS'),
      task('IN_PROGRESS', '31%'),
      task('IN_PROGRESS', '31%', 'a'),
      task('IN_PROGRESS', '31%', 'a'),
      task('SUCCESS', '31%', 'a'),
    ]
    const notes = new Notes()
    watch.add(notes)
    await pass()
    expect(notes.words).toEqual(['IN_PROGRESS'])
    await pass(5 * PAUSE_MS)
    expect(notes.words).toEqual(['IN_PROGRESS', 'IN_PROGRESS 31%', 'IN_PROGRESS 31% a', 'SUCCESS 31% a', 'ended'])
    expect([looks, closings, jest.getTimerCount()]).toEqual([6, 1, 0])
  })

  it('is asked for once, however many follow', async () => {
    answers = [task('SUBMITTED'), task('IN_PROGRESS'), task('SUCCESS')]
    const [first, second, late] = [new Notes(), new Notes(), new Notes()]
    watch.add(first)
    watch.add(second)
    await pass(PAUSE_MS)
    watch.add(late)
    expect(looks).toBe(2)
    await pass(PAUSE_MS)
    expect(first.words).toEqual(['SUBMITTED', 'IN_PROGRESS', 'SUCCESS', 'ended'])
    expect(second.words).toEqual(first.words)
    expect(late.words).toEqual(first.words.slice(1))
  })

  it('is asked for no more when the last has left, and not before', async () => {
    answers = [task('SUBMITTED'), task('SUBMITTED'), task('SUCCESS')]
    const [first, second] = [new Notes(), new Notes()]
    const leaveFirst = watch.add(first)
    const leaveSecond = watch.add(second)
    await pass()
    leaveFirst()
    leaveFirst()
    await pass(PAUSE_MS)
    expect([looks, closings]).toEqual([2, 0])
    leaveSecond()
    await pass(10 * PAUSE_MS)
    expect([looks, closings, jest.getTimerCount()]).toEqual([2, 1, 0])
    expect(second.words).toEqual(['SUBMITTED'])
  })

  it('says nothing to those who have left while it was asked for', async () => {
    answers = [task('SUBMITTED')]
    const notes = new Notes()
    watch.add(notes)()
    await pass(PAUSE_MS)
    expect(notes.words).toEqual([])
    expect([looks, closings, jest.getTimerCount()]).toEqual([1, 1, 0])
  })

  it('fails at once when the first look does', async () => {
    answers = [failure()]
    const notes = new Notes()
    watch.add(notes)
    await pass(PAUSE_MS)
    expect(notes.words).toEqual(['upstream_failed'])
    expect([looks, closings]).toEqual([1, 1])
  })

  it('outlives two failures in a row, and not three', async () => {
    answers = [task('SUBMITTED'), failure(), failure(), task('IN_PROGRESS'), failure(), failure(), failure()]
    const notes = new Notes()
    watch.add(notes)
    await pass(5 * PAUSE_MS)
    expect(notes.words).toEqual(['SUBMITTED', 'IN_PROGRESS'])
    await pass(PAUSE_MS)
    expect(notes.words).toEqual(['SUBMITTED', 'IN_PROGRESS', 'upstream_failed'])
    expect([closings, jest.getTimerCount()]).toEqual([1, 0])
  })

  it('is left alone for as long as the upstream asks', async () => {
    answers = [task('SUBMITTED'), failure(20), task('SUCCESS')]
    watch.add(new Notes())
    await pass(PAUSE_MS + 19_999)
    expect(looks).toBe(2)
    await pass(1)
    expect(looks).toBe(3)
  })

  it('fails as the gateway’s own fault when nobody else’s is known', async () => {
    answers = [new Error('a secret')]
    const notes = new Notes()
    watch.add(notes)
    await pass()
    expect(notes.words).toEqual(['internal'])
  })
})
