import type { Exchange } from '../server/exchange.js'
import { recordHeaderViolations } from '../server/forwarded-headers.js'
import { type JsonObject, parseJsonObject, textOf } from '../server/json-value.js'
import type { TaskClock } from '../tasks/task-clock.js'
import { judgeAccess, type VidgenAccess } from './vidgen-access.js'
import { JSON_HEADERS, newRequestId, vidgenFaults, VidgenRejection } from './vidgen-errors.js'
import { serveMedia } from './vidgen-media.js'
import { judgePage } from './vidgen-page.js'
import { judgeCreate, VIDGEN_KINDS, type VidgenKind } from './vidgen-request.js'
import { createdText, taskText } from './vidgen-task.js'
import type { VidgenTasks } from './vidgen-tasks.js'
import { answeredByWord, answerIsLost } from './vidgen-words.js'

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
export async function serveVidgen(exchange: Exchange, context: VidgenContext): Promise<void> {
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
