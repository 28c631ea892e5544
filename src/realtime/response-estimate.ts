import { countedUnits } from '../core/counted-units.js'
import { FrameScan } from '../core/frame-scan.js'
import type { ExpectedUse } from '../core/quota.js'
import type { Units } from '../core/request-context.js'
import { BASE64_BYTES_PER_CHARACTER } from '../dialects/realtime/strict-base64.js'
import { BYTES_PER_TOKEN, SHORTEST_MEDIUM_CHARACTERS, TOKENS_PER_MEDIUM } from '../limits/estimate-usage.js'
import {
  bytesPerSecond,
  HEARD_TOKENS_PER_SECOND,
  PCM_BYTES_PER_SECOND,
  SPOKEN_TOKENS_PER_SECOND,
} from './audio-rates.js'

/** Of an answer that may be spoken, if it has no maximum that is less. */
const SPOKEN_SECONDS = 10

/** Of audio, always: a limit that is used up must not be missed because of an answer in text. */
const LEAST_SECONDS = 0.1

/**
 * Members that hold sound or pictures in Base64, of which no model reads a character. Slashes may be escaped; quotes never
 * are, so that text which only looks like such a member is none.
 */
const MEDIUM = /"(audio|image_url)"\s*:\s*"([^"]*)"/g

type Fields = Readonly<Record<string, unknown>>

/** What a model reads of events, before it is counted in tokens. */
interface Material {
  readonly textBytes: number
  readonly soundBytes: number
  readonly pictures: number
}

/** What an event says of the answer it asks for. */
interface Wish {
  /** Infinity: without a maximum. */
  readonly mostTokens?: number
  readonly isSpoken?: boolean
}

const NO_MATERIAL: Material = { textBytes: 0, soundBytes: 0, pictures: 0 }
const NO_WISH: Wish = {}

/**
 * What the next answer of a session will use, as far as it can be told before it begins: the conversation as the last
 * answer has counted it, what was sent since, and as much as it may say. Events are looked through, not parsed.
 */
export class ExpectedAnswer {
  private conversationTokens = 0
  private sent = NO_MATERIAL
  private mostTokens = Infinity
  private isSpoken = true
  private inputBytesPerSecond = PCM_BYTES_PER_SECOND

  /** `session`: all of it, as the upstream says it in either dialect. */
  configure(session: Fields): void {
    this.mostTokens = maximumOf(session['max_output_tokens'] ?? session['max_response_output_tokens'])
    const modalities = session['output_modalities'] ?? session['modalities']
    if (Array.isArray(modalities)) this.isSpoken = modalities.includes('audio')
    this.inputBytesPerSecond = bytesPerSecond(session, 'input') ?? this.inputBytesPerSecond
  }

  /** An event of the client has gone upstream; not those that only append to its sound. */
  send(event: Buffer): void {
    this.sent = sumOf(this.sent, materialOf(event))
  }

  /** An answer begins, and has read what was sent. */
  begin(): void {
    this.sent = NO_MATERIAL
  }

  /**
   * One has ended: the next one reads what it read and said. One that read nothing changes nothing; one out of band never
   * makes the conversation shorter, though it may be longer, as some upstreams name no conversation at all.
   */
  end(reported: Units, isOutOfBand = false): void {
    const { promptTokens = 0, completionTokens = 0 } = countedUnits(reported)
    if (promptTokens === 0) return
    const tokens = promptTokens + completionTokens
    this.conversationTokens = isOutOfBand ? Math.max(this.conversationTokens, tokens) : tokens
  }

  /** `heardSeconds`: sound that none has answered yet. `create`: the event that asks for it, where a client does. */
  expected(heardSeconds: number, create?: Buffer): ExpectedUse {
    const wish = create === undefined ? NO_WISH : wishOf(create)
    const { mostTokens = this.mostTokens, isSpoken = this.isSpoken } = wish
    const read = create === undefined ? this.sent : sumOf(this.sent, materialOf(create))
    const { textBytes, soundBytes, pictures } = read
    const isBounded = mostTokens < Infinity
    const heard = heardSeconds + soundBytes / this.inputBytesPerSecond
    const spoken = isSpoken ? Math.min(SPOKEN_SECONDS, mostTokens / SPOKEN_TOKENS_PER_SECOND) : 0
    const readTokens = textBytes / BYTES_PER_TOKEN + pictures * TOKENS_PER_MEDIUM + heard * HEARD_TOKENS_PER_SECOND
    return {
      tokens: this.conversationTokens + Math.ceil(readTokens) + (isBounded ? mostTokens : 0),
      unboundedAnswers: isBounded ? 0 : 1,
      audioSeconds: Math.max(LEAST_SECONDS, Math.ceil((heard + spoken) * 10) / 10),
    }
  }
}

const maximumOf = (value: unknown): number => (typeof value === 'number' && value > 0 ? value : Infinity)

function wishOf(create: Buffer): Wish {
  const member = FrameScan.of(create)?.member('response')
  if (member === undefined) return NO_WISH
  const bytes = create.subarray(member.valueStart, member.valueEnd)
  const response = FrameScan.of(bytes)
  const text = (name: string): string | undefined => {
    const span = response?.member(name)
    const found = span === undefined ? 'null' : bytes.toString('latin1', span.valueStart, span.valueEnd)
    return found === 'null' ? undefined : found
  }
  const maximum = text('max_output_tokens') ?? text('max_response_output_tokens')
  const modalities = text('output_modalities') ?? text('modalities')
  return {
    ...(maximum !== undefined && { mostTokens: maximumOf(Number(maximum)) }),
    ...(modalities !== undefined && { isSpoken: modalities.includes('"audio"') }),
  }
}

function materialOf(event: Buffer): Material {
  const material = { textBytes: event.length, soundBytes: 0, pictures: 0 }
  if (event.length < SHORTEST_MEDIUM_CHARACTERS) return material
  for (const [, name, medium = ''] of event.toString('latin1').matchAll(MEDIUM)) {
    if (medium.length < SHORTEST_MEDIUM_CHARACTERS) continue
    material.textBytes -= medium.length
    if (name === 'audio') material.soundBytes += medium.length * BASE64_BYTES_PER_CHARACTER
    else material.pictures++
  }
  return material
}

const sumOf = (one: Material, other: Material): Material => ({
  textBytes: one.textBytes + other.textBytes,
  soundBytes: one.soundBytes + other.soundBytes,
  pictures: one.pictures + other.pictures,
})
