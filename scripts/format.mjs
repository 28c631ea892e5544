import { readFileSync } from 'node:fs'
import { format } from 'oxfmt'

const style = JSON.parse(readFileSync(new URL('../.oxfmtrc.json', import.meta.url), 'utf8'))

/** The text of a file of this name as `npm run format` would leave it; rejects for a text that cannot be parsed. */
export async function formatted(file, text) {
  const { code, errors } = await format(file, text, style)
  if (errors.length > 0) throw new Error(`${file}: ${errors.map(({ message }) => message).join(', ')}`)
  return code
}
