import { createHash, createHmac, randomBytes } from 'node:crypto'
import { type JsonObject, objectsOf, textOf } from '../server/json-value.js'
import { reject } from './m1-errors.js'

/** Signatures are opaque to everyone else, so a constant key is enough to notice an edited block. */
const KEY = 'simulated-thinking-signature'
const NONCE_BYTES = 12

/** All the simulated model ever thinks. */
export const THINKING_TEXT = 'The caller wants an answer. I shall give one.'

/** The plain text of every redacted block. */
const REDACTED_TEXT = 'Something that the caller is not to read.'

function signatureOf(text: string, nonce: Buffer): string {
  const signature = createHmac('sha256', KEY).update(nonce).update(text).digest()
  return Buffer.concat([nonce, signature]).toString('base64')
}

/** Whether a thinking block is signed by this upstream; also in the place of a redacted block's data. */
export const isSignatureOf = (text: string, signature: string): boolean =>
  signature === signatureOf(text, Buffer.from(signature, 'base64').subarray(0, NONCE_BYTES))

/** Blocks of thinking as answers hold them. */
export type M1Thought =
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | { readonly type: 'redacted_thinking'; readonly data: string }

/** The thoughts of the answer to `messages`. Each step has its own signatures, so that a block in the place of another is noticed, too. */
export function newThoughts(messages: readonly JsonObject[], isPartRedacted: boolean): readonly M1Thought[] {
  const nonce = createHash('sha256').update(JSON.stringify(messages)).digest().subarray(0, NONCE_BYTES)
  const thought = { type: 'thinking', thinking: THINKING_TEXT, signature: signatureOf(THINKING_TEXT, nonce) } as const
  return isPartRedacted ? [thought, { type: 'redacted_thinking', data: signatureOf(REDACTED_TEXT, nonce) }] : [thought]
}

const CALL_NONCE_BYTES = 6
const CALL_ID = /^toolu_([0-9a-f]{12})[0-9a-f]{12}$/

/** The id of a call, which signs the thinking blocks before it: a block that does not come back with its call is missed. */
export function newCallId(
  thoughts: readonly (M1Thought | JsonObject)[],
  nonce: string = randomBytes(CALL_NONCE_BYTES).toString('hex'),
): string {
  const signatures = thoughts.map((thought) => textOf('data' in thought ? thought.data : thought['signature']))
  const signature = createHmac('sha256', KEY)
    .update([nonce, ...signatures].join(' '))
    .digest('hex')
  return `toolu_${nonce}${signature.slice(0, nonce.length)}`
}

/** How the model is let think; undefined where it is not. */
export type M1ThinkingMode = 'enabled' | 'adaptive'

const isThought = ({ type }: JsonObject): boolean => type === 'thinking' || type === 'redacted_thinking'
const isCall = ({ type }: JsonObject): boolean => type === 'tool_use'

/** Of the last message in which the user speaks: with results of tools alone the turn of the assistant goes on. */
export const saidIndex = (messages: readonly JsonObject[]): number =>
  messages.findLastIndex(
    ({ role, content }) =>
      role === 'user' && (typeof content === 'string' || objectsOf(content).some(({ type }) => type !== 'tool_result')),
  )

/**
 * Judges what a tool loop sends back (section 6 of the messages notes): thoughts of the assistant since the user spoke, and of its latest
 * message in any case, must be as they were, and all that a call was made with. A step may have none, but a turn in the mode `enabled`
 * must begin with some. Returns how many calls came without the thoughts that their ids sign. Throws M1Rejection.
 */
export function judgeReturnedThinking(messages: readonly JsonObject[], mode: M1ThinkingMode | undefined): number {
  if (mode === 'enabled') judgeTurnBeginning(messages)
  const first = Math.min(saidIndex(messages), latestAnswerIndex(messages))
  let missing = 0
  messages.forEach(({ role, content }, index) => {
    if (role !== 'assistant' || index < first) return
    const blocks = objectsOf(content)
    const lacksThoughts = (block: JsonObject, at: number): boolean =>
      isCall(block) && !areThoughtsOf(block, blocks.slice(0, at))
    const begun = blocks.findIndex(isThought)
    const isMissing = (block: JsonObject, at: number): boolean =>
      lacksThoughts(block, at) && (begun === -1 || at < begun)
    missing += blocks.filter(isMissing).length
    const position = blocks.findIndex((block, at) =>
      isThought(block) ? !isSigned(block) : mode !== undefined && lacksThoughts(block, at) && !isMissing(block, at),
    )
    if (position === -1) return
    const rule = '`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.'
    reject(
      `messages.${index}.content.${position}: ${rule} These blocks must remain as they were in the original response.`,
    )
  })
  return missing
}

const latestAnswerIndex = (messages: readonly JsonObject[]): number =>
  messages.findLastIndex(({ role }) => role === 'assistant')

/** Of the latest turn, the whole tool loop since the user spoke; where the user breaks in on it, any thought of it is enough. */
function judgeTurnBeginning(messages: readonly JsonObject[]): void {
  const latest = latestAnswerIndex(messages)
  const begun = saidIndex(messages.slice(0, Math.max(0, latest))) + 1
  const steps = [...messages.entries()].slice(begun, latest + 1).filter(([, { role }]) => role === 'assistant')
  const [first] = steps
  const judged = saidIndex(messages) > latest ? steps : steps.slice(0, 1)
  if (first === undefined || !judged.every(([, { content }]) => callsWithoutThought(objectsOf(content)))) return
  const [index, { content }] = first
  const rule = `Expected \`thinking\` or \`redacted_thinking\`, but found \`${textOf(objectsOf(content)[0]?.['type'])}\`.`
  const advice = 'When `thinking` is enabled, a final `assistant` message must start with a thinking block.'
  reject(`messages.${index}.content.0.type: ${rule} ${advice}`)
}

const callsWithoutThought = (blocks: readonly JsonObject[]): boolean =>
  blocks.some(isCall) && !blocks.slice(0, 1).some(isThought)

function isSigned({ type, data, thinking, signature }: JsonObject): boolean {
  if (type === 'redacted_thinking') return isSignatureOf(REDACTED_TEXT, textOf(data))
  // With display "omitted" the text stays away and only the signature returns.
  return isSignatureOf(textOf(thinking) === '' ? THINKING_TEXT : textOf(thinking), textOf(signature))
}

/**
 * Whether what stands before a call ends with the thoughts that its id signs; ids that no simulator made tell nothing of them. The last
 * run of thoughts counts: messages of one role in a row are one, and each has its own.
 */
function areThoughtsOf({ id }: JsonObject, before: readonly JsonObject[]): boolean {
  const nonce = CALL_ID.exec(textOf(id))?.[1]
  const end = before.findLastIndex(isThought) + 1
  const start = before.slice(0, end).findLastIndex((block) => !isThought(block)) + 1
  return nonce === undefined || id === newCallId(before.slice(start, end), nonce)
}
