import { Parser } from 'htmlparser2'

const SILENT = new Set(['script', 'style', 'noscript', 'template', 'title'])
const INLINE = new Set(
  'a abbr b bdi bdo cite code del dfn em font i ins kbd label mark q s samp small span strong sub sup time tt u var wbr'.split(
    ' ',
  ),
)

/** The text of HTML, every element that is not part of a line set apart from what stands beside it. */
export function htmlText(html) {
  const parts = []
  let silent = 0
  const parser = new Parser({
    onopentagname(name) {
      if (SILENT.has(name)) silent += 1
      if (!INLINE.has(name)) parts.push('\n')
    },
    ontext(text) {
      if (silent === 0) parts.push(text)
    },
    onclosetag(name) {
      if (SILENT.has(name)) silent -= 1
      if (!INLINE.has(name)) parts.push('\n')
    },
  })
  parser.end(html)
  return parts.join('')
}
