/** Enough for the last events of any stream: what carries audio or text by the page comes before them. */
const KEPT_BYTES = 800

/** By the path of the call: what the last events of a whole stream are, with the empty line behind them. */
const ENDS: readonly (readonly [path: RegExp, end: RegExp])[] = [
  [/^\/v1\/chat\/completions$/, /\ndata: \[DONE\]\n\n$/],
  [/^\/v1\/messages$/, /\nevent: message_stop\ndata: .*\n\n$/],
  [/^\/v1\/audio\/speech$/, /"speech\.audio\.done".*\n\ndata: \[DONE\]\n\n$/],
  [/^\/v1\/audio\/transcriptions$/, /"transcript\.text\.done".*\n\ndata: \[DONE\]\n\n$/],
  // It goes on until the task has ended.
  [/^\/vidgen\/v1\/videos\/.*\/events$/, /"task_status": ?"(?:succeed|failed)".*\n\n$/],
]
/** Begins an event that tells of a failure. Within a text of a model neither a line nor a quote can stand like this. */
const ERROR = /\n(?:event: error\n|data: \{"error")/

/** Reads a body, however long it is, and gives the last few hundred bytes of it. Rejects when it is cut. */
export async function readToEnd(body: AsyncIterable<Buffer>): Promise<string> {
  let kept: Buffer = Buffer.from('\n')
  for await (const piece of body) kept = Buffer.concat([kept, piece.subarray(-KEPT_BYTES)]).subarray(-KEPT_BYTES)
  return kept.toString('latin1').replaceAll('\r\n', '\n')
}

/**
 * Whether an event stream came to its own end and told of no failure there: one that breaks off upstream ends properly too,
 * with an error or without its last event. False where nothing is known of streams at this path.
 */
export function endsWhole(path: string, end: string): boolean {
  const expected = ENDS.find(([of]) => of.test(path))?.[1]
  return expected?.test(end) === true && !ERROR.test(end)
}
