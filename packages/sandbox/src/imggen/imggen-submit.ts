import type { Exchange } from '../server/exchange.js'
import { type JsonObject, textOf } from '../server/json-value.js'
import type { ImggenTasks } from './imggen-tasks.js'

const HOOK_LIMIT = 2000
const STATE_LIMIT = 255

/** The form of every answer to a submit, and of an answer that is the seed alone. */
export interface SubmitResult {
  readonly code: number
  readonly description: string
  readonly result: string | null
  readonly properties: JsonObject
}

export function submitResult(
  code: number,
  description: string,
  result: string | null = null,
  properties: JsonObject = {},
): SubmitResult {
  return { code, description, result, properties }
}

export async function sendJson(exchange: Exchange, status: number, body: object | string): Promise<void> {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  await exchange.send(status, { 'content-type': 'application/json' }, text)
}

/** What becomes of a wish for a picture. Words in the prompt: see `imggen.simulator.ts`. */
export function imagine(body: JsonObject | undefined, tasks: ImggenTasks): SubmitResult {
  const prompt = textOf(body?.['prompt'])
  const notifyHook = textOf(body?.['notifyHook'])
  const state = textOf(body?.['state'])
  if (prompt.trim() === '') return submitResult(4, 'prompt must not be empty')
  if (notifyHook.length > HOOK_LIMIT) return submitResult(4, `notifyHook must have at most ${HOOK_LIMIT} characters`)
  if (state.length > STATE_LIMIT) return submitResult(4, `state must have at most ${STATE_LIMIT} characters`)
  const words = prompt.split(/\s+/u)
  if (words.includes('#banned')) {
    return submitResult(24, 'The prompt may hold a sensitive word', null, { promptEn: prompt, bannedWord: 'banned' })
  }
  if (words.includes('#full')) return submitResult(23, 'The queue is full, try again later')
  const { id } = tasks.submit({ prompt, notifyHook, state })
  if (words.includes('#queue')) {
    const place = { numberOfQueues: 1, discordInstanceId: '1118138338562560102' }
    return submitResult(22, 'Waiting in the queue, with 1 task before it', id, place)
  }
  if (words.includes('#modal')) {
    return submitResult(21, 'Waiting for window confirm', id, { finalPrompt: prompt, remix: true })
  }
  return submitResult(1, 'Submit success', id)
}

/** The user's answer to a window: a task that waits for it goes on. */
export function confirmWindow(body: JsonObject | undefined, tasks: ImggenTasks): SubmitResult {
  const id = textOf(body?.['taskId'])
  const task = tasks.find(id)
  if (task === undefined) return submitResult(3, 'The task does not exist')
  if (task.timeline[task.at]?.status !== 'MODAL') return submitResult(4, 'The task does not wait for a window')
  tasks.advance(id)
  return submitResult(1, 'Submit success', id)
}
