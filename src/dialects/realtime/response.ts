import { FrameScan } from '../../core/frame-scan.js'
import type { Units } from '../../core/request-context.js'
import { reportedUsage } from '../../core/usage.js'
import { responseIn } from './response-member.js'

const INPUT_TRANSCRIBED = 'conversation.item.input_audio_transcription.completed'

/**
 * The counts that a server event bills, of either dialect: of `response.done`, whatever its status, and of a completed
 * input transcription. `undefined` for all others and where the upstream reports none. Only the usage is parsed.
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
