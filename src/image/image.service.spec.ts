import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { parseConfig } from '../../test/support/config.js'
import { newCall } from '../../test/support/raw-upstream.js'
import { CollectedUsage } from '../../test/support/task-rows.js'
import { ConfigStore } from '../config/config-store.js'
import type { Caller } from '../core/caller.js'
import { GatewayError } from '../core/errors.js'
import type { RequestContext } from '../core/request-context.js'
import type { TaskListener } from '../dialects/task-response.js'
import type { AttemptContext, ImageProvider, UpstreamImageTask } from '../providers/contract.js'
import type { PinnedRoute, ProviderRouter } from '../routing/router.js'
import { EndedImages, ImageChannels, KnownChannels, unknownTask } from './image-tasks.js'
import { ImageService, TaskWatch, TaskWatches } from './image.service.js'

describe('A watched task', () => {
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
      poll: () => {
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

  it('fails as the gateway’s own fault when no other fault is known', async () => {
    answers = [new Error('a secret')]
    const notes = new Notes()
    watch.add(notes)
    await pass()
    expect(notes.words).toEqual(['internal'])
  })
})

const TASK: UpstreamImageTask = { status: 'SUCCESS', progress: '', imageUrl: '', isTerminal: true, object: '{}' }
const FAILED = new GatewayError('upstream_failed', 'No.')
const REFUSED = new GatewayError('invalid_request', 'Not so.')

type Reply = UpstreamImageTask | GatewayError | undefined

/** Channels by name and what each replies, asked in this order. */
function channelsOf(replies: Readonly<Record<string, Reply>>) {
  const asked: string[] = []
  const routes = Object.keys(replies).map((channelId): PinnedRoute<ImageProvider> => {
    const answer = () => {
      asked.push(channelId)
      const reply = replies[channelId]
      return reply instanceof GatewayError ? Promise.reject(reply) : Promise.resolve(reply)
    }
    return {
      channelId,
      options: {},
      modelClass: 'image',
      attempt: (_call, _policy, run) => run({ fetch: answer, seed: answer }, {} as AttemptContext),
    }
  })
  const router: Pick<ProviderRouter, 'imageChannels'> = { imageChannels: () => routes }
  const usage = new CollectedUsage()
  const channels = new ImageChannels(router as ProviderRouter, new KnownChannels(), new EndedImages(usage))
  const ask = (id = '1', call: RequestContext = newCall()) =>
    channels.ask(id, call, (provider, context) => provider.fetch(id, context))
  return { ask, asked, usage }
}

describe('A task', () => {
  it('is looked for on one channel after the other, and then where it was found', async () => {
    const { ask, asked } = channelsOf({ a: undefined, b: FAILED, c: TASK, d: TASK })
    expect(await ask()).toBe(TASK)
    expect(asked.splice(0)).toEqual(['a', 'b', 'c'])
    expect(await ask()).toBe(TASK)
    expect(asked.splice(0)).toEqual(['c'])
    expect(await ask('2')).toBe(TASK)
    expect(asked).toEqual(['a', 'b', 'c'])
  })

  it('is looked for everywhere again when it is gone from where it was', async () => {
    const replies: Record<string, Reply> = { a: undefined, b: TASK, c: undefined }
    const { ask, asked } = channelsOf(replies)
    await ask()
    asked.length = 0
    Object.assign(replies, { b: undefined, c: TASK })
    expect(await ask()).toBe(TASK)
    expect(asked).toEqual(['b', 'a', 'c'])
  })

  it('that no channel knows is not found', async () => {
    await expect(channelsOf({ a: undefined, b: undefined }).ask()).rejects.toMatchObject({ kind: 'not_found' })
    await expect(channelsOf({}).ask()).rejects.toMatchObject({ kind: 'not_found' })
  })

  it.each([
    [{ a: FAILED, b: undefined }, FAILED],
    [{ a: undefined, b: FAILED }, FAILED],
    [{ a: undefined, b: REFUSED, c: FAILED }, REFUSED],
  ])('that is known to none may live where the question failed', async (replies, failure) => {
    const { ask, asked } = channelsOf(replies)
    await expect(ask()).rejects.toBe(failure)
    expect(asked).toEqual(Object.keys(replies))
  })

  it('is looked for no further once the caller has left', async () => {
    const call = newCall()
    const { ask, asked } = channelsOf({ a: FAILED, b: TASK })
    const answer = ask('1', call)
    call.disconnect.abort()
    await expect(answer).rejects.toMatchObject({ kind: 'caller_left' })
    expect(asked).toEqual(['a'])
  })

  it('is nothing to a key of the caller’s own that no channel passes on', async () => {
    const call = newCall()
    const stranger: Caller = { keyId: 'caller', bearer: 'own' }
    call.caller = stranger
    await expect(channelsOf({}).ask('1', call)).rejects.toMatchObject({ kind: 'unauthorized' })
  })
})

describe('The events of a task', () => {
  it('promise nothing before the upstream has answered, however long it takes', async () => {
    jest.useFakeTimers()
    try {
      let fail: (error: GatewayError) => void = () => undefined
      const channels: Pick<ImageChannels, 'ask'> = {
        ask: () =>
          new Promise<UpstreamImageTask>((_answer, reject) => {
            fail = reject
          }),
      }
      const store = new ConfigStore(parseConfig('{}', {}))
      const watches = new TaskWatches(channels as ImageChannels, store)
      const service = new ImageService(channels as ImageChannels, watches, store)
      const outcomes: unknown[] = []
      void service.events('1', newCall()).then(
        (answer) => outcomes.push(answer.status),
        (error: unknown) => outcomes.push(error),
      )
      await jest.advanceTimersByTimeAsync(120_000)
      expect(outcomes).toEqual([])
      const failure = unknownTask()
      fail(failure)
      await jest.advanceTimersByTimeAsync(0)
      expect(outcomes).toEqual([failure])
      expect(jest.getTimerCount()).toBe(0)
    } finally {
      jest.useRealTimers()
    }
  })
})

describe('The memory of channels', () => {
  it('knows where a task was found last', () => {
    const known = new KnownChannels()
    expect(known.find('1')).toBeUndefined()
    known.remember('1', 'first')
    known.remember('1', 'second')
    expect(known.find('1')).toBe('second')
  })

  it('holds 10,000 tasks, and forgets the one asked for longest ago', () => {
    const known = new KnownChannels()
    for (let id = 0; id < 10_000; id++) known.remember(String(id), 'first')
    known.remember('0', 'first')
    known.remember('new', 'first')
    expect([known.find('0'), known.find('1'), known.find('2'), known.find('new')]).toEqual([
      'first',
      undefined,
      'first',
      'first',
    ])
  })
})
