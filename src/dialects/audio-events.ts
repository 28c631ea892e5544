import type { SseDialect } from '../upstream/sse-relay.js'

const ERROR_MARK = 'data: { "error"'

/** Streamed chat: LF, `[DONE]`; recorded audio streams carry no finish reason, other upstreams no `[DONE]`. */
export const CHAT_EVENTS: SseDialect = {
  completionMarks: ['data: [DONE]', '"finish_reason":"', '"finish_reason": "'],
  errorMark: ERROR_MARK,
}

/** Streamed speech: CRLF, `speech.audio.done`, then always `[DONE]`. */
export const SPEECH_EVENTS: SseDialect = {
  completionMarks: ['speech.audio.done"'],
  errorMark: ERROR_MARK,
  terminator: 'data: [DONE]\r\n\r\n',
}

/** Streamed transcription: CRLF; `[DONE]` is on the wire although published samples omit it. */
export const TRANSCRIPTION_EVENTS: SseDialect = {
  completionMarks: ['transcript.text.done"', 'data: [DONE]'],
  errorMark: ERROR_MARK,
}
