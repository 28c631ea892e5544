/** What a tree of HTML says, taken from a page and from its rendered Markdown by the same rules. */
const SILENT = new Set(
  'script style template noscript svg math select textarea button input iframe video audio head'.split(' '),
)
const INLINE = new Set(
  'a abbr b bdi bdo cite code data del dfn em font i img ins kbd label mark q s samp small span strike strong sub sup time tt u var wbr'.split(
    ' ',
  ),
)
const TOKEN = /[\p{L}\p{N}\p{M}]+|[^\s\p{L}\p{N}\p{M}]/gu
/** What generators of manuals put behind a heading, as a link to it. */
const HANDLE = /[\s#¶§]+$/
const SCHEMES = new Set(['http:', 'https:', 'mailto:', 'tel:', 'ftp:'])

/** NFKC takes `x²` for `x2` and a space that does not break for one that does. */
const tidy = (text) =>
  text
    .normalize('NFKC')
    .replace(/[\u00ad\u200b\u2060\ufeff]/g, '')
    .replace(/\s+/g, ' ')
    .trim()

const childrenOf = (node) => {
  const children = []
  for (let child = node.firstChild; child; child = child.nextSibling) children.push(child)
  return children
}

function textOf(node, { isCode = false, skip = () => false } = {}) {
  if (node.nodeType === 3) return node.data
  if (node.nodeType !== 1 || SILENT.has(node.localName) || skip(node)) return ''
  if (node.localName === 'br') return '\n'
  const inner = childrenOf(node)
    .map((child) => textOf(child, { isCode, skip }))
    .join('')
  return INLINE.has(node.localName) || isCode ? inner : `\n${inner}\n`
}

function addressOf(node, name, baseUrl) {
  const reference = node.getAttributeNode(name)?.value.trim() ?? ''
  if (reference === '' || reference.startsWith('#') || !URL.canParse(reference, baseUrl)) return undefined
  const url = new URL(reference, baseUrl)
  const isHere = url.hash !== '' && url.href.replace(/#.*/, '') === baseUrl.replace(/#.*/, '')
  return SCHEMES.has(url.protocol) && !isHere ? url.href.replaceAll('|', '%7C').replaceAll('\\', '%5C') : undefined
}

const named = (node, names) => node.nodeType === 1 && names.includes(node.localName)
const below = (node, names) =>
  childrenOf(node).flatMap((child) => (named(child, names) ? [child] : child.nodeType === 1 ? below(child, names) : []))
const isList = (node) => named(node, ['ul', 'ol'])

/** Pairs of cells side by side, of rows in which every cell is one row and one column. */
function cellPairs(table) {
  if (below(table, ['table']).length > 0) return []
  const rows = below(table, ['tr']).map((row) => childrenOf(row).filter((cell) => named(cell, ['td', 'th'])))
  if (
    rows.length < 2 ||
    rows.some((cells) =>
      cells.some((cell) =>
        ['rowspan', 'colspan'].some((name) => Number(cell.getAttributeNode(name)?.value ?? 1) !== 1),
      ),
    )
  )
    return []
  return rows.flatMap((cells) =>
    cells.slice(1).flatMap((cell, index) => {
      const pair = [tidy(textOf(cells[index])), tidy(textOf(cell))]
      return pair.every((text) => text !== '') ? [pair.join(' | ')] : []
    }),
  )
}

/** Lists of things said: {tokens, heading, link, image, item, cells, program, code, strong, emphasis}. */
export function factsOf(root, baseUrl) {
  const facts = { tokens: tidy(textOf(root)).match(TOKEN) ?? [], heading: [], link: [], image: [], item: [], cells: [] }
  Object.assign(facts, { program: [], code: [], strong: [], emphasis: [] })
  const add = (kind, value) => value !== '' && facts[kind].push(value)
  const visit = (node, depth) => {
    if (node.nodeType !== 1 || SILENT.has(node.localName)) return
    const name = node.localName
    if (/^h[1-6]$/.test(name)) {
      const words = tidy(textOf(node)).replace(HANDLE, '')
      if (words !== '') add('heading', `${name} ${words}`)
    }
    if (name === 'a' && tidy(textOf(node)) !== '') {
      const url = addressOf(node, 'href', baseUrl)
      if (url !== undefined) add('link', `${tidy(textOf(node))} ${url}`)
    }
    if (name === 'img') {
      const url = addressOf(node, 'src', baseUrl)
      if (url !== undefined) add('image', `${tidy(node.getAttributeNode('alt')?.value ?? '')} ${url}`)
    }
    if (name === 'li') {
      const own = tidy(textOf(node, { skip: isList }))
      if (own !== '') add('item', `${depth} ${node.parentNode?.localName} ${own}`)
    }
    if (name === 'table') for (const pair of cellPairs(node)) add('cells', pair)
    if (name === 'pre') {
      const lines = textOf(node, { isCode: true })
        .replace(/\r\n?/g, '\n')
        .replace(/[ \t\u00a0]+$/gm, '')
        .replace(/^\n+|\n+$/g, '')
      add('program', lines.replaceAll('\u00a0', ' '))
      return
    }
    if (['code', 'kbd', 'samp', 'tt'].includes(name)) add('code', tidy(textOf(node)))
    if (name === 'strong' || name === 'b') add('strong', tidy(textOf(node)))
    if (name === 'em' || name === 'i') add('emphasis', tidy(textOf(node)))
    for (const child of childrenOf(node)) visit(child, isList(node) ? depth + 1 : depth)
  }
  visit(root, 0)
  return facts
}
