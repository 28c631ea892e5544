import { crc32, deflateSync } from 'node:zlib'
import type { Exchange } from '../server/exchange.js'
import type { FaultDialect, StatusFault } from '../server/faults.js'
import { type JsonObject, listOf, parseJsonObject, textOf } from '../server/json-value.js'
import { recordHeaderViolations } from '../server/recorded-request.js'
import type { TaskClock } from '../tasks/task-clock.js'
import {
  type ImggenTask,
  type ImggenTasks,
  type ImggenVariant,
  isOver,
  seedOf,
  stepOf,
  taskText,
} from './imggen-tasks.js'

const HOOK_LIMIT = 2000
const STATE_LIMIT = 255

/** The form of every answer to a submit, and of an answer that is the seed alone. */
export interface SubmitResult {
  readonly code: number
  readonly description: string
  readonly result: string | null
  readonly properties: JsonObject
}

function submitResult(
  code: number,
  description: string,
  result: string | null = null,
  properties: JsonObject = {},
): SubmitResult {
  return { code, description, result, properties }
}

async function sendJson(exchange: Exchange, status: number, body: object | string): Promise<void> {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  await exchange.send(status, { 'content-type': 'application/json' }, text)
}

/** What becomes of a wish for a picture. Words in the prompt: see `imggen.simulator.ts`. */
function imagine(body: JsonObject | undefined, tasks: ImggenTasks): SubmitResult {
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
function confirmWindow(body: JsonObject | undefined, tasks: ImggenTasks): SubmitResult {
  const id = textOf(body?.['taskId'])
  const task = tasks.find(id)
  if (task === undefined) return submitResult(3, 'The task does not exist')
  if (task.timeline[task.at]?.status !== 'MODAL') return submitResult(4, 'The task does not wait for a window')
  tasks.advance(id)
  return submitResult(1, 'Submit success', id)
}

const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex')
const RGB = 2
const BITS = 8

/** A square picture of one colour (`#rrggbb` without the sign). */
export function pngFile(side: number, colour: string): Buffer {
  const size = Buffer.alloc(4)
  size.writeUInt32BE(side)
  const head = Buffer.concat([size, size, Buffer.from([BITS, RGB, 0, 0, 0])])
  const row = Buffer.concat([Buffer.from([0]), Buffer.alloc(side * 3, Buffer.from(colour, 'hex'))])
  const pixels = deflateSync(Buffer.concat(Array<Buffer>(side).fill(row)))
  return Buffer.concat([SIGNATURE, chunk('IHDR', head), chunk('IDAT', pixels), chunk('IEND', Buffer.alloc(0))])
}

function chunk(type: string, content: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), content])
  const length = Buffer.alloc(4)
  length.writeUInt32BE(content.length)
  const checksum = Buffer.alloc(4)
  checksum.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, checksum])
}

/** What a simulator answers from. */
export interface ImggenContext {
  readonly apiKey: string | undefined
  readonly variant: ImggenVariant
  readonly unknown: 'empty' | 'null'
  readonly seed: 'result' | 'task'
  readonly seedDelayMs: number
  readonly listsOthers: boolean
  readonly clock: TaskClock
  readonly tasks: ImggenTasks
  readonly imageUrl: () => string
}

const BODY_LIMIT_BYTES = 16 * 1024 * 1024
/** The second and third bind a task to a speed. */
const ROUTES = /^(?:\/mj|\/mj-(?:fast|turbo|relax)\/mj)(\/.+)$/
const TASK_ROUTE = /^\/task\/([^/]+)\/(fetch|image-seed)$/

/** Answers one request. */
export async function serveImggen(exchange: Exchange, context: ImggenContext): Promise<void> {
  const { request } = exchange
  if (request.path.startsWith('/images/')) return serveImage(exchange, context.tasks)
  recordHeaderViolations(request, 'mj-api-secret')
  const bytes = await exchange.readBody(BODY_LIMIT_BYTES)
  const secret = request.headers['mj-api-secret']
  if (context.apiKey !== undefined && secret !== context.apiKey) return exchange.send(401, {}, '')
  const route = ROUTES.exec(request.path)?.[1] ?? ''
  const [, id, question] = TASK_ROUTE.exec(route) ?? []
  if (request.method === 'POST') {
    await serveSubmit(exchange, route, bytes === undefined ? undefined : parseJsonObject(bytes), context)
  } else if (request.method === 'GET' && id !== undefined) await serveTask(exchange, id, question === 'fetch', context)
  else await exchange.send(404, {}, '')
}

async function serveSubmit(
  exchange: Exchange,
  route: string,
  body: JsonObject | undefined,
  context: ImggenContext,
): Promise<void> {
  if (await exchange.answeredByFault(imggenFaults, undefined)) return
  if (route === '/submit/imagine') await sendJson(exchange, 200, imagine(body, context.tasks))
  else if (route === '/submit/modal') await sendJson(exchange, 200, confirmWindow(body, context.tasks))
  else if (route === '/task/list-by-condition') await sendJson(exchange, 200, listText(body, context))
  else await exchange.send(404, {}, '')
}

async function serveTask(exchange: Exchange, id: string, isFetch: boolean, context: ImggenContext): Promise<void> {
  const task = context.tasks.find(id)
  if (await exchange.answeredByFault(imggenFaults, task?.prompt)) return
  if (exchange.takeErrorFrame()) await sendJson(exchange, 500, submitResult(9, 'Internal error'))
  else if (task === undefined) await answerUnknown(exchange, isFetch, context)
  else if (!isFetch) await serveSeed(exchange, task, context)
  else if (task.prompt.split(/\s+/u).includes('#null')) await sendJson(exchange, 200, 'null')
  else await sendJson(exchange, 200, taskText(task, context.variant, context.imageUrl()))
}

/** Each member of the family has its own way of not knowing a task. */
async function answerUnknown(exchange: Exchange, isFetch: boolean, { variant, unknown }: ImggenContext): Promise<void> {
  if (variant === 'A') {
    // The spelling is theirs.
    await sendJson(exchange, 400, { description: 'task_no_found', type: 'upstream_error', code: 4 })
  } else if (variant === 'T') await exchange.send(404, {}, '')
  else if (isFetch) await sendJson(exchange, 200, unknown === 'null' ? 'null' : '')
  else await sendJson(exchange, 200, submitResult(3, 'The task does not exist'))
}

async function serveSeed(exchange: Exchange, task: ImggenTask, context: ImggenContext): Promise<void> {
  if (stepOf(task).status !== 'SUCCESS') {
    await sendJson(exchange, 400, submitResult(4, 'The task has no message hash'))
    return
  }
  if (context.seedDelayMs > 0) {
    await new Promise<void>((resolve) => context.clock.after(context.seedDelayMs, resolve))
  }
  if (context.seed === 'task') await sendJson(exchange, 200, taskText(task, context.variant, context.imageUrl(), true))
  else await sendJson(exchange, 200, { code: 1, description: 'success', result: seedOf(task) })
}

/** Unknown ids are left out; with `listsOthers` the newest other task is added. */
function listText(body: JsonObject | undefined, context: ImggenContext): string {
  const ids = listOf(body?.['ids'])
  const all = context.tasks.all()
  const others = context.listsOthers ? all.filter(({ id }) => !ids.includes(id)).slice(-1) : []
  const listed = [...others, ...all.filter(({ id }) => ids.includes(id))]
  return `[${listed.map((task) => taskText(task, context.variant, context.imageUrl())).join(',')}]`
}

/** A picture of one colour: grey for a preview, red for the finished one. */
async function serveImage(exchange: Exchange, tasks: ImggenTasks): Promise<void> {
  const [, id = '', at = ''] = /^\/images\/(\d+)-(\d+)\.png$/.exec(exchange.request.path) ?? []
  const task = tasks.find(id)
  if (task === undefined || task.timeline[Number(at)]?.hasImage !== true) await exchange.send(404, {}, '')
  else {
    const colour = isOver(task) && Number(at) === task.at ? 'c03030' : '808080'
    await exchange.send(200, { 'content-type': 'image/png' }, pngFile(64, colour))
  }
}

const CODE_OF_FAULT: Readonly<Partial<Record<StatusFault, number>>> = {
  '400': 4,
  '413': 4,
  '422': 4,
  '429': 23,
  quota: 30,
}

/** What the service answers for the common faults. It has no event streams. */
const imggenFaults: FaultDialect = {
  statusAnswer: (fault) => {
    const status = fault === 'quota' ? 429 : Number(fault)
    // Refusals of the key, and what the service does not know, come without a word.
    if (['401', '403', '404'].includes(fault)) return { status, headers: {}, body: '' }
    const retry: Record<string, string> = fault === '429' ? { 'retry-after': '2', 'retry-after-ms': '1200' } : {}
    const body = JSON.stringify(submitResult(CODE_OF_FAULT[fault] ?? 9, 'The request failed'))
    return { status, headers: { 'content-type': 'application/json', ...retry }, body }
  },
  errorFrames: () => [],
}
