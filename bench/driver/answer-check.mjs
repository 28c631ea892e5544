/** How long past its planned end a slot may take to drain. */
export const DRAIN_LIMIT_MS = 20_000

/** Throws when an answer is not the one expected: a figure taken over wrong answers means nothing. */
export function checkAnswer(status, bodyBytes, expectedBytes) {
  if (status !== 200) throw new Error(`answered ${status}`)
  if (bodyBytes !== expectedBytes) throw new Error(`answered ${bodyBytes} bytes, expected ${expectedBytes}`)
}
