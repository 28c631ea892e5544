import type { IncomingHttpHeaders } from 'node:http'
import { isWritingDialect, type WritingDialect } from '../config/model-classes.js'
import type { AnswerDocumentation, EndpointSpec, ParameterDocumentation } from '../core/endpoint.js'
import { GatewayError } from '../core/errors.js'
import { TEXT } from '../core/json-schema.js'

const STRICT = 'strict'

/** By which a caller refuses losses, in the OpenAPI document of the endpoints that are translated. */
export const TRANSLATION_HEADER: ParameterDocumentation = {
  in: 'header',
  name: 'x-gateway-translation',
  description: `${STRICT} = a request is refused where a translation to the dialect of its upstream would approximate or drop a field`,
  schema: { ...TEXT, enum: [STRICT] },
}

/**
 * Whether a request's headers refuse losses. Throws `invalid_request` for another value than `strict`: a slip must not serve a caller who
 * means to be strict as all others are.
 */
export function readStrictness(headers: IncomingHttpHeaders, endpoint: EndpointSpec | undefined): boolean {
  const { [TRANSLATION_HEADER.name]: value } = headers
  if (value === undefined || !isWritingDialect(endpoint?.capability ?? 'none')) return false
  if (value === STRICT) return true
  throw new GatewayError('invalid_request', `The header ${TRANSLATION_HEADER.name} can only be '${STRICT}'.`, {
    param: TRANSLATION_HEADER.name,
    code: 'invalid_value',
  })
}

/** By which a translated answer says so, in the same document. */
export const TRANSLATED_HEADERS: Required<AnswerDocumentation>['headers'] = {
  'x-gateway-dialect': {
    description:
      'Only where the request was translated: its dialect over that of the upstream, as `chat over messages`',
    schema: TEXT,
  },
  'x-gateway-approximated': {
    description:
      'Paths of the fields that keep their meaning in another form, comma-separated; ends with `...` where there are more',
    schema: TEXT,
  },
  'x-gateway-dropped': {
    description: 'Paths of the fields that were left out, comma-separated; ends with `...` where there are more',
    schema: TEXT,
  },
}

/** By which translations say which tokens the gateway has counted itself. */
export const ESTIMATED_HEADER = 'x-gateway-estimated'

/** As `TRANSLATED_HEADERS`, of endpoints whose translated answers may have an estimate. */
export const ESTIMATED_HEADERS: typeof TRANSLATED_HEADERS = {
  ...TRANSLATED_HEADERS,
  [ESTIMATED_HEADER]: {
    description:
      '`true` where the gateway itself counted the tokens that were asked for; `message_start.usage` where it did so in the first event alone',
    schema: TEXT,
  },
}

/** A client's dialect over an upstream's. */
export interface DialectPair {
  readonly client: WritingDialect
  readonly upstream: WritingDialect
}

/** Verdicts of one kind are shown up to this length. */
const SHOWN_BYTES = 512
const MORE = ',...'

/** Names of callers may hold anything. */
const UNPRINTABLE = /[^\x21-\x2b\x2d-\x7e]/g

/**
 * What became of a request in another dialect (docs/decisions/0041). What has the same meaning there is not mentioned; what keeps
 * its meaning in another form or number is approximated; hints without which the answer means the same are dropped; everything else is
 * refused before an upstream is called. A strict caller gets the refusal in all three cases. Paths are those of the caller's fields.
 */
export class Verdicts {
  private readonly approximatedPaths = new Set<string>()
  private readonly droppedPaths = new Set<string>()

  constructor(
    readonly pair: DialectPair,
    private readonly isStrict: boolean,
  ) {}

  /** As `a over b`. */
  get dialects(): string {
    return `${this.pair.client} over ${this.pair.upstream}`
  }

  /** Paths, comma-separated; undefined = none. */
  get approximated(): string | undefined {
    return listed(this.approximatedPaths)
  }

  get dropped(): string | undefined {
    return listed(this.droppedPaths)
  }

  /** The meaning is kept, the form or the number differs. `wayOut`: what a strict caller can do, the beginning of a sentence. */
  approximate(path: string, wayOut = LEAVE_OUT): void {
    if (this.isStrict) throw this.refusal(path, `only approximately. ${wayOut}, ${LENIENT}`)
    this.approximatedPaths.add(path)
  }

  /** Without this hint the answer means the same and costs about the same. */
  drop(path: string): void {
    if (this.isStrict) throw this.refusal(path, `not at all. ${LEAVE_OUT}, ${LENIENT}`)
    this.droppedPaths.add(path)
  }

  /** It would change what is answered, paid, stored or allowed. `hint`: a sentence on what the caller can do. */
  refuse(path: string, hint: string): never {
    throw this.refusal(path, `not at all. ${hint}`)
  }

  private refusal(path: string, outcome: string): GatewayError {
    const { client, upstream } = this.pair
    return new GatewayError(
      'invalid_request',
      `Unsupported value: '${path}'. The model is served over its upstream's ${upstream} dialect, to which this field of ${client} ` +
        `translates ${outcome}`,
      { param: path, code: 'unsupported_value' },
    )
  }
}

const LEAVE_OUT = 'Leave it out'
const LENIENT = `or send the request without ${TRANSLATION_HEADER.name}: ${STRICT}.`

function listed(paths: ReadonlySet<string>): string | undefined {
  if (paths.size === 0) return undefined
  const text = [...paths].map((path) => path.replace(UNPRINTABLE, '?')).join(',')
  return text.length <= SHOWN_BYTES ? text : text.slice(0, SHOWN_BYTES - MORE.length) + MORE
}
