import { FrameScan } from '../../core/frame-scan.js'

/** The `response` of an event: of the client's that asks for an answer, and of the upstream's that begin and end it. */
export function responseIn(scan: FrameScan | undefined, frame: Buffer): Buffer | undefined {
  const response = scan?.member('response')
  return response && frame.subarray(response.valueStart, response.valueEnd)
}

/** By which an upstream names an answer from its beginning to its end. */
export const answerIdOf = (frame: Buffer): string | undefined => scanOf(frame)?.scan.text('id')

/** Whether a client asks for an answer that is to be no part of the conversation. */
export const asksOutOfBand = (create: Buffer): boolean => scanOf(create)?.scan.text('conversation') === 'none'

/** Whether the upstream says that an answer is of no conversation, which some say of every answer. */
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
