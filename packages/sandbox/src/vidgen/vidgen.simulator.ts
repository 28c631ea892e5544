import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Exchange } from '../server/exchange.js'
import { fieldOf, type JsonObject, parseJsonObject, textOf } from '../server/json-value.js'
import { recordHeaderViolations } from '../server/recorded-request.js'
import { ServedLedger } from '../server/served-usage.js'
import { type Simulator, type SimulatorOptions, startSimulator } from '../server/simulator-server.js'
import { realClock, type TaskClock } from '../tasks/task-clock.js'
import { type HookOptions, HookSender, type SentHook } from '../tasks/webhooks.js'
import { mp4File } from './mp4-file.js'
import { JSON_HEADERS, newRequestId, vidgenCode, vidgenFaults, VidgenRejection } from './vidgen-errors.js'
import { judgeCreate, judgePage, VIDGEN_KINDS, type VidgenKind } from './vidgen-request.js'
import {
  callbackText,
  createdText,
  hasWatermark,
  hasWord,
  isOver,
  MEDIA_LIFETIME_MS,
  taskText,
  videoFacts,
  type VidgenStatus,
  type VidgenTask,
  type VidgenTaskMs,
  VidgenTasks,
} from './vidgen-tasks.js'

/** Whom the service lets in: who signs tokens with a pair of keys, or who knows a bearer. */
export type VidgenAccess = { readonly accessKey: string; readonly secretKey: string } | { readonly bearer: string }

/**
 * Judges the header `Authorization`: 1001 without it, 1002 when it cannot be read, 1000 when it is not of this account,
 * 1003 and 1004 outside the token's time. Without `access` every bearer but `bad` is good. Throws VidgenRejection.
 */
export function judgeAccess(authorization: string | undefined, access: VidgenAccess | undefined, nowMs: number): void {
  if (authorization === undefined || authorization.trim() === '') throw new VidgenRejection(1001)
  const token = /^Bearer (\S+)$/.exec(authorization)?.[1]
  if (token === undefined) throw new VidgenRejection(1002)
  if (access !== undefined && 'accessKey' in access) judgeToken(token, access, nowMs)
  else if (access === undefined ? token === 'bad' : token !== access.bearer) throw new VidgenRejection(1000)
}

function judgeToken(token: string, keys: { accessKey: string; secretKey: string }, nowMs: number): void {
  const [header = '', claims = '', signature = '', ...rest] = token.split('.')
  const head = decodeTokenPart(header)
  const body = decodeTokenPart(claims)
  if (rest.length > 0 || body === undefined || fieldOf(head, 'alg') !== 'HS256') throw new VidgenRejection(1002)
  const expected = createHmac('sha256', keys.secretKey).update(`${header}.${claims}`).digest()
  const given = Buffer.from(signature, 'base64url')
  const isSigned = given.length === expected.length && timingSafeEqual(given, expected)
  if (!isSigned || textOf(body['iss']) !== keys.accessKey) throw new VidgenRejection(1000)
  const { exp, nbf } = body
  if (typeof exp !== 'number' || typeof nbf !== 'number') throw new VidgenRejection(1002)
  if (nbf * 1000 > nowMs) throw new VidgenRejection(1003)
  if (exp * 1000 <= nowMs) throw new VidgenRejection(1004)
}

function decodeTokenPart(part: string): JsonObject | undefined {
  return parseJsonObject(Buffer.from(part, 'base64url'))
}

/** Answers a GET of a video's link: 404 when there is none, or not any more. A credential sent along is a violation. */
async function serveMedia(exchange: Exchange, tasks: VidgenTasks, clock: TaskClock): Promise<void> {
  const { request } = exchange
  for (const name of ['authorization', 'x-api-key', 'cookie']) {
    if (request.headers[name] !== undefined) request.violations.push(`credential sent to a video link: ${name}`)
  }
  const [, id = '', watermark] = /^\/media\/(\d+)(-watermark)?\.mp4$/.exec(request.path) ?? []
  const task = tasks.find(id)
  const isThere =
    task?.status === 'succeed' &&
    task.updatedAtMs + MEDIA_LIFETIME_MS > clock.nowMs() &&
    (watermark === undefined || hasWatermark(task))
  if (isThere) await exchange.send(200, { 'content-type': 'video/mp4' }, mp4File(videoFacts(task)))
  else await exchange.send(404, { 'content-type': 'application/xml' }, '<Error><Code>NoSuchKey</Code></Error>')
}

/**
 * Words in a prompt that change the course of things, beside the faults of `faults.ts` (which must come first in the
 * prompt; those that spoil an answer spoil that of a create whose task was made):
 *
 * | Word | Effect |
 * |---|---|
 * | `#1301`, `#1303`, `#1102`, `#5000` and every other code of `vidgen-codes.table.ts` | that refusal; no task is made |
 * | `#html` | 502 with an HTML page; no task is made |
 * | `#lost` | the task is made, then the connection is reset without an answer |
 * | `#lost5000` | the task is made, then the answer is 500 with the code 5000 |
 * | `#fail` | the task fails, with the words of a moderation |
 * | `#stuck` | the task stays `processing` for ever |
 */
async function answeredByWord(exchange: Exchange, prompt: string): Promise<boolean> {
  const words = prompt.split(/\s+/u).filter((word) => word.startsWith('#'))
  const code = words.map((word) => vidgenCode(word.slice(1))).find((known) => known !== undefined)
  if (code !== undefined) throw new VidgenRejection(code)
  if (!words.includes('#html')) return false
  const page = '<html><head><title>502 Bad Gateway</title></head><body>502 Bad Gateway</body></html>'
  await exchange.send(502, { 'content-type': 'text/html' }, page)
  return true
}

/** True when the answer to a create was lost on its way. */
async function answerIsLost(exchange: Exchange, task: VidgenTask): Promise<boolean> {
  if (hasWord(task, 'lost')) {
    exchange.breakOff()
    return true
  }
  if (!hasWord(task, 'lost5000')) return false
  const { status, headers, body } = new VidgenRejection(5000).answer
  await exchange.send(status, headers, body)
  return true
}

/** What a simulator answers from. */
export interface VidgenContext {
  readonly access: VidgenAccess | undefined
  readonly modelPrefix: string
  readonly tokenNowMs: () => number
  readonly clock: TaskClock
  readonly tasks: VidgenTasks
  /** Known once the server listens. */
  readonly mediaUrl: () => string
}

interface Target {
  readonly kind: VidgenKind
  /** Absent for the collection. */
  readonly id?: string
}

/** Four images of 10 MB as Base64, and the rest. */
const BODY_LIMIT_BYTES = 64 * 1024 * 1024
/** Answers one request. */
async function serveVidgen(exchange: Exchange, context: VidgenContext): Promise<void> {
  const { request } = exchange
  if (request.path.startsWith('/media/')) return serveMedia(exchange, context.tasks, context.clock)
  recordHeaderViolations(request, 'authorization')
  const bytes = await exchange.readBody(BODY_LIMIT_BYTES)
  try {
    judgeAccess(request.headers['authorization'], context.access, context.tokenNowMs())
    const target = targetOf(request.path)
    if (target === undefined) throw new VidgenRejection(1202)
    if (request.method === 'POST' && target.id === undefined) await serveCreate(exchange, target.kind, bytes, context)
    else if (request.method === 'GET') await serveQuery(exchange, target, context)
    else throw new VidgenRejection(1202)
  } catch (error) {
    if (!(error instanceof VidgenRejection)) throw error
    const { status, headers, body } = error.answer
    await exchange.send(status, headers, body)
  }
}

async function serveCreate(
  exchange: Exchange,
  kind: VidgenKind,
  bytes: Buffer | undefined,
  context: VidgenContext,
): Promise<void> {
  const body = bytes === undefined ? undefined : parseJsonObject(bytes)
  const prompt = textOf(body?.['prompt'])
  if (await answeredByWord(exchange, prompt)) return
  if (await exchange.answeredByFault(vidgenFaults, prompt)) return
  const judged = judgeCreate(kind, judgeType(exchange, body), context.modelPrefix)
  if (exchange.takeErrorFrame()) throw new VidgenRejection(5000)
  const task = context.tasks.create(kind, judged)
  if (await answerIsLost(exchange, task)) return
  await answer(exchange, createdText(task))
}

async function serveQuery(exchange: Exchange, { kind, id }: Target, context: VidgenContext): Promise<void> {
  if (await exchange.answeredByFault(vidgenFaults, undefined)) return
  if (exchange.takeErrorFrame()) throw new VidgenRejection(5000)
  const url = context.mediaUrl()
  if (id === undefined) {
    const { pageNum, pageSize } = judgePage(exchange.request.query)
    const objects = context.tasks.list(kind, pageNum, pageSize).map((task) => taskText(task, url))
    await answer(exchange, `[${objects.join(',')}]`)
    return
  }
  const task = context.tasks.find(id)
  if (task?.kind !== kind) throw new VidgenRejection(1203)
  await answer(exchange, taskText(task, url))
}

function judgeType(exchange: Exchange, body: JsonObject | undefined): JsonObject | undefined {
  const isJson = /^application\/json\s*(?:;|$)/i.test(exchange.request.headers['content-type'] ?? '')
  if (!isJson) throw new VidgenRejection(1200, 'Content-Type must be application/json')
  return body
}

async function answer(exchange: Exchange, data: string): Promise<void> {
  const head = JSON.stringify({ code: 0, message: 'SUCCEED', request_id: newRequestId() })
  await exchange.send(200, JSON_HEADERS, `${head.slice(0, -1)},"data":${data}}`)
}

function targetOf(path: string): Target | undefined {
  const [, name = '', id] = /^\/v1\/videos\/([^/]+)(?:\/([^/]+))?$/.exec(path) ?? []
  const kind = VIDGEN_KINDS.find((known) => known === name)
  if (kind === undefined) return undefined
  return id === undefined ? { kind } : { kind, id: decodePathPart(id) }
}

function decodePathPart(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw new VidgenRejection(1200, 'The path is not valid')
  }
}

export interface VidgenSimulatorOptions extends SimulatorOptions {
  /** Time by which tasks proceed and videos are deleted. Default: the real one. */
  readonly clock?: TaskClock
  /** How long a task stays `submitted` and `processing`. Default 2 s and 4 s. */
  readonly taskMs?: VidgenTaskMs
  /** Time by which tokens are judged, in Unix milliseconds. Default: the real one, independent of `clock`. */
  readonly tokenNowMs?: () => number
  /** What the names of all models begin with. Default `vidgen-`. */
  readonly modelPrefix?: string
  /** How `callback_url` is called. Default: unsigned, once, in order. */
  readonly callbacks?: HookOptions
}

/** A running simulator and its tasks, which outlive every caller. */
export interface VidgenSimulator extends Simulator {
  /** Every task made so far, oldest first. */
  readonly creates: readonly VidgenTask[]
  /** External ids that came a second time: each would have been paid for twice. */
  readonly duplicates: readonly string[]
  /** Callbacks sent so far, at most the last 1,000. */
  readonly callbacks: readonly SentHook[]
  /** Resolves when no callback is under way. */
  callbacksSent(): Promise<void>
  /** One state further: the task with this id or external id, or all that have not ended. */
  advance(id?: string): void
  /** Ends a task now. */
  settle(id: string, status: 'succeed' | 'failed'): void
  /** Shows a task in this state from now on, even one that lies behind it. */
  show(id: string, status: VidgenStatus): void
  /** From now on the task is unknown: 1203. */
  forget(id: string): void
}

const DEFAULT_TASK_MS = { submitted: 2000, processing: 4000 }

/**
 * Starts the video upstream: both kinds of tasks under `/v1/videos`, and the videos themselves. `access` says who may
 * call; without it every bearer but `bad` may. Words in a prompt that change the course of things: `vidgen-words.ts`.
 */
export async function startVidgenSimulator(
  access?: VidgenAccess,
  options: VidgenSimulatorOptions = {},
): Promise<VidgenSimulator> {
  const { clock = realClock, taskMs = DEFAULT_TASK_MS, tokenNowMs = Date.now, modelPrefix = 'vidgen-' } = options
  const hooks = new HookSender(options.callbacks)
  let url = ''
  const mediaUrl = (): string => url
  const { served = new ServedLedger() } = options
  const onChange = (task: VidgenTask): void => {
    if (task.status === 'succeed') served.add(textOf(task.fields['model_name']), { videos: 1 })
    const address = textOf(task.fields['callback_url'])
    if (address !== '') hooks.send(task.id, address, callbackText(task, url), isOver(task))
  }
  const tasks = new VidgenTasks({ clock, taskMs, onChange })
  const context = { access, modelPrefix, tokenNowMs, clock, tasks, mediaUrl }
  const simulator = await startSimulator((exchange) => serveVidgen(exchange, context), { ...options, served })
  url = simulator.url
  return withTasks(simulator, tasks, hooks)
}

function withTasks(simulator: Simulator, tasks: VidgenTasks, hooks: HookSender): VidgenSimulator {
  const closeServer = simulator.close.bind(simulator)
  return Object.assign(simulator, {
    creates: tasks.creates,
    duplicates: tasks.duplicates,
    callbacks: hooks.sent,
    callbacksSent: () => hooks.idle(),
    advance: tasks.advance.bind(tasks),
    settle: tasks.show.bind(tasks),
    show: tasks.show.bind(tasks),
    forget: tasks.forget.bind(tasks),
    close: async () => {
      tasks.close()
      await hooks.close()
      await closeServer()
    },
  })
}
