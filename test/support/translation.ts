import { GatewayError } from '../../src/core/errors.js'
import { JsonBody, type ModelFields } from '../../src/core/json-body.js'
import { JsonTexts } from '../../src/core/json-text.js'
import { factsOf, type ModelFacts } from '../../src/dialects/model-facts.js'
import type { Seals, Translation, TranslationTarget, Translator } from '../../src/dialects/translator.js'
import { type DialectPair, Verdicts } from '../../src/dialects/verdicts.js'

type JsonObject = Record<string, unknown>

const SEAL = 'sealed.'

/** Seals that anybody can open, and that are the same each time. */
const OPEN_SEALS: Seals = {
  seal: (text) => SEAL + Buffer.from(text).toString('base64url'),
  open: (sealed) =>
    sealed.startsWith(SEAL) ? Buffer.from(sealed.slice(SEAL.length), 'base64url').toString() : undefined,
}

export const sealed = (text: string): string => OPEN_SEALS.seal(text)

export interface TranslationSetting extends Partial<Omit<TranslationTarget, 'facts'>> {
  /** Of the model; the others are those of a model of which nothing is known. */
  readonly facts?: Partial<ModelFacts>
  readonly isStrict?: boolean
}

/** One request through a translator, and its answers back. */
export class TranslationRun<Fields extends ModelFields, UpstreamFields extends object> {
  readonly verdicts: Verdicts
  readonly translation: Translation<UpstreamFields>

  /** `request`: its fields, or as it is spelled. */
  constructor(
    pair: DialectPair,
    translator: Translator<Fields, UpstreamFields>,
    request: object | string,
    { facts = {}, isStrict = false, ...target }: TranslationSetting = {},
  ) {
    this.verdicts = new Verdicts(pair, isStrict)
    const text = typeof request === 'string' ? request : JSON.stringify({ model: 'asked', ...request })
    const body = JsonBody.parse(Buffer.from(text))
    this.translation = translator(
      body.as(body.fields as object as Fields),
      {
        upstreamModel: 'upstream-model',
        requestId: 'req_1',
        seals: OPEN_SEALS,
        ...target,
        facts: { ...factsOf(undefined), ...facts },
      },
      this.verdicts,
    )
  }

  /** The upstream's request, parsed. */
  get sent(): JsonObject {
    return JSON.parse(this.sentText) as JsonObject
  }

  get sentText(): string {
    return this.translation.request.bytes.toString()
  }

  /** JSON text for a whole answer, which may be given as it is spelled. */
  answerText(upstream: object | string): string {
    const text = typeof upstream === 'string' ? upstream : JSON.stringify(upstream)
    return this.translation.response(JSON.parse(text) as JsonObject, new JsonTexts(Buffer.from(text)))
  }

  /** Frames of the whole stream. */
  frames(upstream: readonly object[]): string {
    const events = this.translation.events()
    return [...upstream.map((data) => events.event(data as JsonObject)), events.end()].join('')
  }

  /** Frames of a stream that failed behind some events. */
  failedFrames(upstream: readonly object[], error: GatewayError): string {
    const events = this.translation.events()
    const frames = upstream.map((data) => events.event(data as JsonObject))
    return [...frames, events.failure?.(error) ?? ''].join('')
  }
}

/** The error that the work throws. */
export function thrownBy(work: () => unknown): GatewayError {
  try {
    work()
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error('Nothing was thrown.')
}
