import type { Exchange } from '../server/exchange.js'
import { vidgenCode } from './vidgen-codes.table.js'
import { VidgenRejection } from './vidgen-errors.js'
import { hasWord, type VidgenTask } from './vidgen-task.js'

/**
 * Words in a prompt that change the course of things, beside the faults of `faults.ts` (which must come first in the
 * prompt; those that spoil an answer spoil that of a create whose task was made):
 *
 * | Word | Effect |
 * |---|---|
 * | `#1301`, `#1303`, `#1102`, `#5000` and every other code of `vidgen-codes.table.ts` | that refusal; no task is made |
 * | `#html` | 502 with an HTML page; no task is made |
 * | `#lost` | the task is made, then the connection is reset without an answer |
 * | `#lost5000` | the task is made, then the answer is 500 with the code 5000 |
 * | `#fail` | the task fails, with the words of a moderation |
 * | `#stuck` | the task stays `processing` for ever |
 */
export async function answeredByWord(exchange: Exchange, prompt: string): Promise<boolean> {
  const words = prompt.split(/\s+/u).filter((word) => word.startsWith('#'))
  const code = words.map((word) => vidgenCode(word.slice(1))).find((known) => known !== undefined)
  if (code !== undefined) throw new VidgenRejection(code)
  if (!words.includes('#html')) return false
  const page = '<html><head><title>502 Bad Gateway</title></head><body>502 Bad Gateway</body></html>'
  await exchange.send(502, { 'content-type': 'text/html' }, page)
  return true
}

/** True when the answer to a create was lost on its way. */
export async function answerIsLost(exchange: Exchange, task: VidgenTask): Promise<boolean> {
  if (hasWord(task, 'lost')) {
    exchange.breakOff()
    return true
  }
  if (!hasWord(task, 'lost5000')) return false
  const { status, headers, body } = new VidgenRejection(5000).answer
  await exchange.send(status, headers, body)
  return true
}
