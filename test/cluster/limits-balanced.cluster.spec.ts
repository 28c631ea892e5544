import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { TRANSCRIPTIONS, wavOfSeconds } from '../support/audio-uploads.js'
import { SPEECH_PATH, speechText } from '../support/chat-bodies.js'
import { sendRaw } from '../support/raw-http.js'
import { fieldPart, filePart, MULTIPART, multipartBytes } from '../support/upload-server.js'
import type { BalancerAnswers } from './balancer.js'
import { type ChatCluster, startChatCluster } from './chat-cluster.js'
import { CLUSTER_START_MS } from './cluster.js'
import { comesTrue } from './daemon.js'
import { keysWith, LimitedCaller, refusalOf } from './limited-caller.js'
import { ofStatus, rush, RUSH_CALLERS, type RushAnswer, rushUntilRefused } from './rush.js'

/** Each of its own, so that no test uses up another's. */
const KEYS = {
  requests: { requestsPerMinute: 600 },
  tokens: { tokensPerMinute: 60_000 },
  audio: { audioSecondsPerMinute: 1800 },
  places: { concurrency: 6 },
  sessions: { realtimeSessions: 2 },
}

/** After that its window is over, and more would be served. */
const RUSH_MS = 55_000

/** What a call may answer at most: with its prompt it is what is reserved for it, and a part of that is given back. */
const ANSWER_TOKENS = 50

/** About nine seconds when they are spoken, for which ten are reserved: as for the recording. */
const SPOKEN = 'a'.repeat(150)
const SPOKEN_BYTES_PER_SECOND = 48_000
const RECORDING = multipartBytes([filePart(wavOfSeconds(10)), fieldPart('model', 'whisper-1')])

let cluster: ChatCluster
beforeAll(async () => {
  cluster = await startChatCluster({ keys: keysWith(KEYS) })
}, CLUSTER_START_MS)
afterAll(() => cluster.close())

const callerOf = (key: keyof typeof KEYS, url = cluster.url): LimitedCaller => new LimitedCaller(url, key)

interface UsingAnswer extends RushAnswer {
  /** What it says that it has used. */
  readonly used: number
}

async function chat(key: 'requests' | 'tokens', text = 'Hi'): Promise<UsingAnswer> {
  const answer = await callerOf(key).chat(text, { max_tokens: ANSWER_TOKENS })
  const body = (await answer.json()) as { readonly usage?: { readonly total_tokens: number } }
  return { status: answer.status, used: body.usage?.total_tokens ?? 0 }
}

/** Seconds of speech, as many as there are in the bytes. */
async function speak(): Promise<UsingAnswer> {
  const body = speechText(SPOKEN, { response_format: 'pcm' })
  const answer = await sendRaw(cluster.url, { path: SPEECH_PATH, headers: { authorization: 'Bearer audio' }, body })
  return { status: answer.status, used: answer.status === 200 ? answer.body.length / SPOKEN_BYTES_PER_SECOND : 0 }
}

/** Seconds of a recording, as many as its transcript says. */
async function transcribe(): Promise<UsingAnswer> {
  const headers = { ...MULTIPART, authorization: 'Bearer audio' }
  const { status, text } = await sendRaw(cluster.url, { path: TRANSCRIPTIONS, headers, body: RECORDING })
  const { usage } = JSON.parse(text) as { readonly usage?: { readonly seconds: number } }
  return { status, used: usage?.seconds ?? 0 }
}

const answersOfEach = (): Promise<BalancerAnswers[]> =>
  Promise.all(cluster.replicas.map((_replica, index) => cluster.balancer.answers(index + 1)))

/** What came of it, and how many answers each replica gave meanwhile, as the balancer has counted them. */
async function dividedOf<Result>(work: () => Promise<Result>): Promise<[Result, readonly BalancerAnswers[]]> {
  const before = await answersOfEach()
  const result = await work()
  const parts = (await answersOfEach()).map(({ served, refused }, index) => ({
    served: served - (before[index]?.served ?? 0),
    refused: refused - (before[index]?.refused ?? 0),
  }))
  return [result, parts]
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0)

/** All answers are theirs, and a quarter at least of what was served was served by each. */
function expectBothServed(parts: readonly BalancerAnswers[], answers: readonly RushAnswer[]): void {
  const served = ofStatus(answers, 200).length
  expect(sumOf(parts.map((part) => part.served))).toBe(served)
  expect(sumOf(parts.map((part) => part.refused))).toBe(answers.length - served)
  for (const part of parts) expect(part.served).toBeGreaterThan(served / 4)
}

/** Two in a hundred more or less. */
function expectShared(used: number, limit: number): void {
  expect(used).toBeGreaterThanOrEqual(0.98 * limit)
  expect(used).toBeLessThanOrEqual(1.02 * limit)
}

describe('Two replicas behind the balancer', () => {
  it(
    'serve 600 of 1,000 requests that all come at once, within two in a hundred',
    async () => {
      const [answers, parts] = await dividedOf(() => rush(1000, () => chat('requests')))
      const served = ofStatus(answers, 200).length
      expectShared(served, KEYS.requests.requestsPerMinute)
      expect(served + ofStatus(answers, 429).length).toBe(1000)
      expectBothServed(parts, answers)
    },
    RUSH_MS,
  )

  it(
    'serve as many tokens as one key has a minute, within two in a hundred',
    async () => {
      const [answers, parts] = await dividedOf(() => rushUntilRefused(() => chat('tokens', '#words=20')))
      expect(ofStatus(answers, 429)).toHaveLength(RUSH_CALLERS)
      expectShared(sumOf(answers.map(({ used }) => used)), KEYS.tokens.tokensPerMinute)
      expectBothServed(parts, answers)
    },
    RUSH_MS,
  )

  it(
    'speak and hear as many seconds as one key has a minute, within two in a hundred',
    async () => {
      const [answers, parts] = await dividedOf(() =>
        rushUntilRefused((number) => (number % 2 === 0 ? speak() : transcribe())),
      )
      expect(ofStatus(answers, 429)).toHaveLength(RUSH_CALLERS)
      expectShared(sumOf(answers.map(({ used }) => used)), KEYS.audio.audioSecondsPerMinute)
      expectBothServed(parts, answers)
    },
    RUSH_MS,
  )

  it('have as many under way as the limit says, of all that come at once', async () => {
    const controller = new AbortController()
    const refusals: unknown[] = []
    const [asked, parts] = await dividedOf(async () => {
      const calls = Array.from({ length: 40 }, async () => {
        const answer = await callerOf('places')
          .chat('#hang', {}, controller.signal)
          .catch(() => undefined)
        if (answer !== undefined) refusals.push(await refusalOf(answer))
        return answer === undefined ? 'left' : 'answered'
      })
      await comesTrue(() => refusals.length === 34)
      return calls
    })
    expect(refusals).toEqual(Array.from({ length: 34 }, () => [429, 'concurrency; scope=key:places; reset=1']))
    expect(sumOf(parts.map(({ refused }) => refused))).toBe(34)
    for (const { refused } of parts) expect(refused).toBeGreaterThan(0)
    for (const { url } of cluster.replicas) expect(await callerOf('places', url).inUse('concurrency')).toBe(6)
    controller.abort()
    expect((await Promise.all(asked)).filter((end) => end === 'left')).toHaveLength(6)
    for (const { url } of cluster.replicas)
      await comesTrue(async () => (await callerOf('places', url).inUse('concurrency')) === 0)
    expect((await callerOf('places').chat()).status).toBe(200)
  })

  it('hold as many sessions as the key has, one each, and the next one once one has ended', async () => {
    const caller = callerOf('sessions')
    const held = async (): Promise<number[]> => [await cluster.balancer.sessions(1), await cluster.balancer.sessions(2)]
    await comesTrue(async () => sumOf(await held()) === 0)
    const sessions = [await caller.dial(), await caller.dial()]
    expect(await held()).toEqual([1, 1])
    const [refusals, parts] = await dividedOf(() => Promise.all([1, 2, 3, 4].map(() => caller.dialled())))
    const refusal = [429, 'realtimeSessions; scope=key:sessions; reset=1']
    expect(refusals).toEqual([refusal, refusal, refusal, refusal])
    for (const { refused } of parts) expect(refused).toBeGreaterThan(0)
    sessions[0]?.close()
    await comesTrue(async () => (await caller.inUse('realtimeSessions')) === 1)
    sessions.push(await caller.dial())
    expect(await caller.inUse('realtimeSessions')).toBe(2)
    for (const session of sessions) session.terminate()
  })
})
