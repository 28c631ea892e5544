import type { Conversation } from './conversation.js'
import type { RealtimeContext } from './realtime-dialect.js'
import { ResponseRun } from './response-run.js'
import {
  inputTokens,
  readResponseRequest,
  type ResponseEnding,
  type ResponseRequest,
  type TokenCount,
} from './response.js'
import type { EventSender } from './server-events.js'
import type { SessionState } from './session-config.js'
import { RealtimeRejection } from './validation.js'

/** Starts and cancels the responses of one session: at most one at a time in the conversation, others beside it. */
export class ResponseDesk {
  #active: ResponseRun | undefined
  #finished: Promise<void> = Promise.resolve()
  readonly #outOfBand = new Set<ResponseRun>()
  #previousInput: TokenCount = { text: 0, audio: 0 }

  constructor(
    private readonly sender: EventSender,
    private readonly state: SessionState,
    private readonly conversation: Conversation,
    private readonly context: RealtimeContext,
    /** Takes what goes on while the client's next events are read. */
    private readonly background: (work: Promise<void>) => void,
  ) {}

  /** Begins a response; `response` is that of the client's event. Throws RealtimeRejection. */
  async create(response: unknown): Promise<void> {
    const request = readResponseRequest(response, {
      dialect: this.sender.dialect,
      session: this.state.facts,
      conversation: this.conversation,
      faultWords: this.sender.session.faultWords,
    })
    if (request.isOutOfBand) this.#startBeside(request)
    else await this.#start(request)
  }

  /** Cancels what the client no longer wants. Throws RealtimeRejection when there is nothing to cancel. */
  cancel(responseId: string | undefined): void {
    const candidates = [...(this.#active === undefined ? [] : [this.#active]), ...this.#outOfBand]
    const wanted = responseId === undefined ? this.#active : candidates.find(({ id }) => id === responseId)
    if (wanted !== undefined && !wanted.isCancelled) {
      wanted.cancel('client_cancelled')
      return
    }
    throw new RealtimeRejection('response_cancel_not_active', 'Cancellation failed: no active response found')
  }

  /** New speech has begun: the model falls silent. Resolves when it has. */
  async interrupt(): Promise<void> {
    this.#active?.cancel('turn_detected')
    if (this.#active !== undefined) await this.#finished
  }

  async #start(request: ResponseRequest): Promise<void> {
    if (this.#active?.isCancelled === true) await this.#finished
    if (this.#active !== undefined) {
      const advice = 'Wait until the response is finished before creating a new one.'
      const message = `Conversation already has an active response in progress: ${this.#active.id}. ${advice}`
      throw new RealtimeRejection('conversation_already_has_active_response', message)
    }
    const { conversation } = this
    const input = inputTokens(request)
    const run = new ResponseRun(this.sender, {
      ...this.#common(request, input),
      conversationId: conversation.id,
      enter: (item) => conversation.insert(item),
      onDone: () => {
        this.#active = undefined
        this.sender.session.clientMayLeave = true
      },
    })
    this.#active = run
    this.#previousInput = input
    this.sender.session.clientMayLeave = false
    this.#finished = run.run()
    this.background(this.#finished)
  }

  #startBeside(request: ResponseRequest): void {
    const run: ResponseRun = new ResponseRun(this.sender, {
      ...this.#common(request, inputTokens(request)),
      conversationId: null,
      enter: undefined,
      onDone: () => this.#outOfBand.delete(run),
    })
    this.#outOfBand.add(run)
    this.background(run.run())
  }

  #common(
    request: ResponseRequest,
    input: TokenCount,
  ): {
    request: ResponseRequest
    input: TokenCount
    previousInput: TokenCount
    paceMs: number
    failure: ResponseEnding | undefined
  } {
    const failure = failureOf(request, this.sender)
    return { request, input, previousInput: this.#previousInput, paceMs: this.context.paceMs, failure }
  }
}

const FAILURES: Readonly<Record<string, { readonly type: string; readonly message: string }>> = {
  server_error: {
    type: 'server_error',
    message: 'The server had an error while processing your request. Sorry about that!',
  },
  rate_limit_exceeded: {
    type: 'invalid_request_error',
    message: 'Rate limit reached for this-model on tokens per min.',
  },
  insufficient_quota: {
    type: 'insufficient_quota',
    message: 'You exceeded your current quota, please check your plan and billing details.',
  },
}

/** An unknown model fails the first response, not the handshake. */
function failureOf({ wish }: ResponseRequest, { record, dialect }: EventSender): ResponseEnding | undefined {
  const isGone = dialect === 'ga' && record.model.includes('realtime-preview')
  if (isGone || record.model.startsWith('missing-')) {
    const message = `The model \`${record.model}\` does not exist or you do not have access to it.`
    return { status: 'failed', error: { type: 'invalid_request_error', code: 'model_not_found', message } }
  }
  if (!wish.words.has('fail')) return undefined
  const { type, message } = FAILURES[wish.failCode] ?? { type: 'invalid_request_error', message: 'Simulated failure.' }
  return { status: 'failed', error: { type, code: wish.failCode, message } }
}
