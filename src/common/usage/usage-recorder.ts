import type { Units } from '../http/call.js'

/** One thing an upstream charges for, as it reported it, or as the gateway counted it (`estimated`). */
export interface UsageEntry {
  /** The request id of the call it belongs to; one realtime session makes many entries. */
  readonly callId: string
  readonly keyId: string
  readonly channelId: string
  /** As the caller named it. */
  readonly model: string
  /** `response`: one answer of the model. `input_transcription`: what the caller said, written down by another model. */
  readonly kind: 'response' | 'input_transcription'
  readonly units: Units
  readonly estimated: boolean
}

/**
 * Takes note of what was used; the token under which capabilities inject it. Whoever calls `record` goes on whatever it
 * throws: accounting never ends what it counts.
 */
export abstract class UsageRecorder {
  abstract record(entry: UsageEntry): void
}
