import { Injectable } from '@nestjs/common'
import { GatewayError } from '../../core/errors.js'
import { parseOpenAIError } from '../../dialects/openai-wire.js'
import type { RealtimeDialect } from '../../dialects/realtime/dialect.js'
import { UpstreamSockets } from '../../upstream/websocket-client.js'
import type { AttemptContext, RealtimeOpening, RealtimeProvider, RealtimeUpstream } from '../contract.js'

/** The longest events are items that repeat a client's audio, of which one append alone may hold 20 MiB in base64. */
const MAXIMUM_MESSAGE_BYTES = 64 * 1024 * 1024

/**
 * Names beside `model` that P1 knows. All others stay here: a parser may take them for one of its own, and careless ones hold
 * keys.
 */
const RELAYED_PARAMETERS = ['intent']

/** A channel's options; the configuration has checked them. */
interface P1Options {
  readonly realtimeDialect?: RealtimeDialect
}

/** `GET /v1/realtime` at P1, upgraded: one socket for one session. */
@Injectable()
export class P1RealtimeProvider implements RealtimeProvider {
  constructor(private readonly sockets: UpstreamSockets) {}

  async open(opening: RealtimeOpening, context: AttemptContext): Promise<RealtimeUpstream> {
    assertNewSession(opening)
    const { credentials, deadlineAtMs, options, target } = context
    const { realtimeDialect: dialect = 'ga' } = options as P1Options
    const request = {
      path: pathFor(opening, context),
      headers: {
        authorization: `Bearer ${credentials}`,
        // It must be absent for the current dialect.
        ...(dialect === 'beta' ? { 'openai-beta': 'realtime=v1' } : {}),
      },
      maximumMessageBytes: MAXIMUM_MESSAGE_BYTES,
    }
    const { headers, socket, refusal } = await this.sockets.dial(request, target, context, deadlineAtMs)
    const requestId = headers['x-request-id']
    if (typeof requestId === 'string') context.record.upstreamRequestId = requestId
    if (refusal !== undefined) throw await parseOpenAIError(refusal, context)
    return { socket, dialect }
  }
}

/** `call_id` attaches to a telephone call of the account behind the channel, even of another caller. */
function assertNewSession({ query }: RealtimeOpening): void {
  if (query['call_id'] === undefined) return
  throw new GatewayError('invalid_request', "Unsupported parameter: 'call_id'. Only new sessions can be opened here.", {
    param: 'call_id',
    code: 'unsupported_value',
  })
}

/** P1 refuses a transcription session that names a model in the query: its settings name the one that transcribes. */
function pathFor({ kind, query }: RealtimeOpening, { upstreamModel }: AttemptContext): string {
  if (kind === 'transcription') return '/v1/realtime?intent=transcription'
  const parameters = new URLSearchParams({ model: upstreamModel })
  for (const name of RELAYED_PARAMETERS) {
    const value = query[name]
    if (value !== undefined) parameters.append(name, value)
  }
  return `/v1/realtime?${parameters.toString()}`
}
