import { FrameScan } from '../../core/json-spans.js'
import type { Units } from '../../core/request-context.js'
import { reportedUsage } from '../../core/usage.js'

/**
 * The `response` of an event: of a client's `response.create`, and of the upstream events that begin and end a
 * response.
 */
function responseIn(scan: FrameScan | undefined, frame: Buffer): Buffer | undefined {
  const response = scan?.member('response')
  return response && frame.subarray(response.valueStart, response.valueEnd)
}

/** The upstream's id of a response, the same from its beginning to its end. */
export const responseIdOf = (frame: Buffer): string | undefined => scanOf(frame)?.scan.text('id')

/** Whether a client requests a response that is not part of the conversation. */
export const requestsOutOfBand = (create: Buffer): boolean => scanOf(create)?.scan.text('conversation') === 'none'

/** Whether the upstream reports a response without a conversation, as some upstreams do for every response. */
export function isOutOfBand(frame: Buffer): boolean {
  const { scan, bytes } = scanOf(frame) ?? {}
  const id = scan?.member('conversation_id')
  return id !== undefined && bytes?.toString('latin1', id.valueStart, id.valueEnd) === 'null'
}

function scanOf(frame: Buffer): { scan: FrameScan; bytes: Buffer } | undefined {
  const bytes = responseIn(FrameScan.of(frame), frame)
  const scan = bytes && FrameScan.of(bytes)
  return scan && { scan, bytes }
}

const INPUT_TRANSCRIBED = 'conversation.item.input_audio_transcription.completed'

/**
 * The units that a server event bills, in either dialect: of `response.done`, whatever its status, and of a completed
 * input transcription. `undefined` for other events and where the upstream reports no usage. Only the usage is parsed.
 */
export function usageOf(frame: Buffer): Units | undefined {
  const scan = FrameScan.of(frame)
  const type = scan?.type()?.type
  if (type === INPUT_TRANSCRIBED) return unitsIn(frame, scan)
  const response = type === 'response.done' ? responseIn(scan, frame) : undefined
  return response && unitsIn(response, FrameScan.of(response))
}

function unitsIn(bytes: Buffer, scan: FrameScan | undefined): Units | undefined {
  const usage = scan?.member('usage')
  if (usage === undefined) return undefined
  try {
    return reportedUsage(JSON.parse(bytes.toString('utf8', usage.valueStart, usage.valueEnd)))?.units
  } catch {
    return undefined
  }
}
