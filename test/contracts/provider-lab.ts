import type { Fault } from '@multi-model-gateway/sandbox/server/faults.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import { type RawAnswer, type RawRequest, sendRaw, startGateway, type TestGateway } from '../support/gateway.js'
import { withLab } from '../support/provider-gateways.js'

/** What befalls the next request at an upstream, whatever its dialect calls it. */
export type UpstreamFault = 'callersFault' | 'refusedKey' | 'busy' | 'failure' | 'malformed' | 'hang' | 'cut' | 'stall'

const FAULTS: Readonly<Record<UpstreamFault, Fault>> = {
  callersFault: '400',
  refusedKey: '401',
  busy: '429',
  failure: '500',
  malformed: 'malformed',
  hang: 'hang',
  cut: 'cut',
  stall: 'stall',
}

/** Lets the next request suffer the fault; none that the gateway makes for itself meanwhile. */
export function queueFault(upstream: Simulator, fault: UpstreamFault | Fault, { method = 'POST' }: RawRequest): void {
  upstream.queueFault(isNamed(fault) ? FAULTS[fault] : fault, method)
}

const isNamed = (fault: UpstreamFault | Fault): fault is UpstreamFault => typeof fault === 'string' && fault in FAULTS

/** How often a request was sent to the upstream. */
export const timesSent = ({ requests }: Simulator, { method = 'POST' }: RawRequest): number =>
  requests.filter((request) => request.method === method).length

/** The caller's response to a failure: the status and the code of the dialect. */
export interface Refusal {
  readonly status: number
  readonly word: string | number
}

/** How errors look on an endpoint. */
export interface ErrorDialect {
  readonly wordOf: (error: Readonly<Record<string, unknown>>) => unknown
  readonly messageOf: (error: Readonly<Record<string, unknown>>) => unknown
  readonly callersFault: Refusal
  readonly failed: Refusal
  readonly timedOut: Refusal
  readonly busy: Refusal
}

/** One way to ask: its request, and what the provider must make of it. */
export interface CallForm {
  readonly name: string
  readonly errors: ErrorDialect
  /** A request that is answered well; `upstream` is the simulator of the first channel. */
  readonly request: (upstream: Simulator) => RawRequest
  /** Throws (by `expect`) where an answer is not what was asked for. */
  readonly expectAnswer: (answer: RawAnswer) => void
  /** Set where the answer is a stream of events: the words of its terminator. */
  readonly terminator?: string
  /** A request with fields that the specification does not name, and the text of them that must arrive upstream. */
  readonly unknownFields?: { readonly request: RawRequest; readonly arrives: string }
  /** What the log says of the use; absent where a call costs nothing when it is answered. */
  readonly usage?: object
  /** Faults after which a second channel is asked; by default those that are the channel's own. */
  readonly movesOnAfter?: readonly UpstreamFault[]
  /** Every channel is queried, after any failure: only one of them has the task. */
  readonly asksAll?: true
  /** Set where an answer is waited for longer than the channel says. */
  readonly isPatient?: true
}

/** One provider of a capability: how its simulator is started, and how a channel leads there. */
export interface ProviderPlan {
  readonly provider: string
  /** The address below the simulator's. */
  readonly prefix?: string
  readonly options?: object
  readonly models?: readonly string[]
  /** What the channel holds; planted canaries in no form that a scrubber knows as a key. */
  readonly credentials: string
  readonly start: () => Promise<Simulator>
  readonly forms: readonly CallForm[]
  /** Whether the gateway needs a store of its own, and where that lies. */
  readonly dataDirectory?: () => Promise<string>
}

export interface ContractLab {
  readonly gateway: TestGateway
  readonly upstream: Simulator
  /** The same as `upstream` where there is one channel only. */
  readonly second: Simulator
  readonly send: (request: RawRequest) => Promise<RawAnswer>
  readonly sendAfter: (fault: UpstreamFault | Fault, request: RawRequest) => Promise<RawAnswer>
  readonly close: () => Promise<void>
}

export interface ContractLabOptions {
  readonly channel?: object
  readonly withSecond?: boolean
}

/** `exposed` collects every response and the log, to be searched for what must not leave the gateway. */
export async function startContractLab(
  plan: ProviderPlan,
  exposed: string[],
  { channel = {}, withSecond = false }: ContractLabOptions = {},
): Promise<ContractLab> {
  const upstream = await plan.start()
  const second = withSecond ? await plan.start() : upstream
  const leads = (id: string, { url }: Simulator): object => ({
    ...{ id, provider: plan.provider, baseUrl: url + (plan.prefix ?? ''), credentials: plan.credentials },
    ...(plan.options === undefined ? {} : { options: plan.options }),
    ...(plan.models === undefined ? {} : { models: plan.models }),
    ...channel,
  })
  const channels = [leads('first', upstream), ...(withSecond ? [{ ...leads('second', second), priority: 1 }] : [])]
  const dataDirectory = await plan.dataDirectory?.()
  // Tasks are asked for only when a caller asks.
  const sections = dataDirectory === undefined ? {} : { tasks: { pollIntervalMs: 3_600_000 } }
  const gateway = await startGateway({ channels, sections, ...(dataDirectory === undefined ? {} : { dataDirectory }) })
  const send = async (request: RawRequest): Promise<RawAnswer> => {
    const answer = await sendRaw(gateway.url, request)
    exposed.push(JSON.stringify(answer.headers), answer.text)
    return answer
  }
  return {
    gateway,
    upstream,
    second,
    send,
    sendAfter: (fault, request) => {
      queueFault(upstream, fault, request)
      return send(request)
    },
    close: async () => {
      await gateway.close()
      await upstream.close()
      if (withSecond) await second.close()
      exposed.push(gateway.logText())
    },
  }
}

/** A lab for one test: what it marks and leaves behind ends with it. */
export const withContractLab = (
  plan: ProviderPlan,
  exposed: string[],
  options: ContractLabOptions,
  run: (lab: ContractLab) => Promise<void>,
): Promise<void> => withLab(startContractLab(plan, exposed, options), run)

const AUDIO = { status: 500, word: 'upstream_failed' }
const codeOf = (error: Readonly<Record<string, unknown>>): unknown => error['code']
const messageOf = (error: Readonly<Record<string, unknown>>): unknown => error['message']

/** The error body of OpenAI's dialect; `/v1/audio/*` has 500 where others have 502 and 504. */
export const OPENAI_AUDIO: ErrorDialect = {
  wordOf: codeOf,
  messageOf,
  callersFault: { status: 400, word: 'invalid_value' },
  failed: AUDIO,
  timedOut: { ...AUDIO, word: 'upstream_timeout' },
  busy: { status: 429, word: 'rate_limit_exceeded' },
}

export const OPENAI_CHAT: ErrorDialect = {
  ...OPENAI_AUDIO,
  failed: { status: 502, word: 'upstream_failed' },
  timedOut: { status: 504, word: 'upstream_timeout' },
}

export const ANTHROPIC: ErrorDialect = {
  wordOf: (error) => error['type'],
  messageOf,
  callersFault: { status: 400, word: 'invalid_request_error' },
  failed: { status: 502, word: 'api_error' },
  timedOut: { status: 504, word: 'api_error' },
  busy: { status: 429, word: 'rate_limit_error' },
}

/** Tasks and documents: the error is the body itself. */
export const TASK_CODES: ErrorDialect = {
  wordOf: codeOf,
  messageOf,
  callersFault: { status: 400, word: 1201 },
  failed: { status: 502, word: 5000 },
  timedOut: { status: 504, word: 5002 },
  busy: { status: 429, word: 1302 },
}

/** The error of a body or of an event: its member `error`, or itself. */
export function errorIn(text: string): Readonly<Record<string, unknown>> {
  const body = JSON.parse(text) as Readonly<Record<string, unknown>>
  const { error } = body
  return typeof error === 'object' && error !== null ? (error as Readonly<Record<string, unknown>>) : body
}
