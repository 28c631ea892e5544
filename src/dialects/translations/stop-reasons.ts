/** Why a model stopped, in the words of chat and messages; each table is closed, and a word that it lacks means a plain end. */

/** How an answer ended, whatever dialect said it. `refused` beats calls of tools: those of a refused turn are not handed on. */
export type AnswerEnd = 'ended' | 'truncated' | 'called' | 'refused'

const CHAT_ENDS: Readonly<Record<string, AnswerEnd>> = {
  stop: 'ended',
  length: 'truncated',
  tool_calls: 'called',
  function_call: 'called',
  content_filter: 'refused',
}

/** `hasCalls`: some upstreams say stop all the same. */
export function endOfChat(finishReason: unknown, hasCalls: boolean, hasRefusal: boolean): AnswerEnd {
  const end = CHAT_ENDS[String(finishReason)] ?? 'ended'
  if (end === 'refused' || hasRefusal) return 'refused'
  return end === 'ended' && hasCalls ? 'called' : end
}

export const CHAT_FINISH: Readonly<Record<AnswerEnd, string>> = {
  ended: 'stop',
  truncated: 'length',
  called: 'tool_calls',
  refused: 'content_filter',
}

const MESSAGES_ENDS: Readonly<Record<string, AnswerEnd>> = {
  end_turn: 'ended',
  stop_sequence: 'ended',
  max_tokens: 'truncated',
  model_context_window_exceeded: 'truncated',
  tool_use: 'called',
  refusal: 'refused',
}

/** undefined for `pause_turn`, which cannot be gone on with in another dialect: the answer is the upstream's failure. */
export const endOfMessage = (stopReason: unknown): AnswerEnd | undefined =>
  stopReason === 'pause_turn' ? undefined : (MESSAGES_ENDS[String(stopReason)] ?? 'ended')

export const MESSAGES_STOP: Readonly<Record<AnswerEnd, string>> = {
  ended: 'end_turn',
  truncated: 'max_tokens',
  called: 'tool_use',
  refused: 'refusal',
}
