import { Random } from '../text/random.mjs'

const PIECES = [
  ...[
    'word',
    'two words',
    ' ',
    ' ',
    '中文。',
    'é',
    '5',
    '1.',
    '1)',
    '-',
    '+',
    '*',
    '**',
    '_',
    '__',
    '~',
    '~~',
    '`',
    '``',
    '#',
    '##',
  ],
  ...[
    '>',
    '|',
    '\\',
    '\\|',
    '[',
    ']',
    '(',
    ')',
    '[x](y)',
    '![x](y)',
    '[a]: b',
    '[ ] ',
    '&amp;',
    '&#35;',
    '<b>',
    '</p>',
    '<!--',
  ],
  ...['<script>', '<?x', '<a@b.cd>', 'https://e.org/_a_', '---', '===', '|-', ':-:', '!', ':', '.', '=', '$', '"', "'"],
]
const RANDOM_TEXTS = 3_000

/** Single pieces, and pieces put together by seeded chance; none is blank only. */
export function hostileTexts() {
  const random = new Random(23)
  const made = Array.from({ length: RANDOM_TEXTS }, () =>
    Array.from({ length: random.integer(1, 6) }, () => random.pick(PIECES)).join(''),
  )
  return [...PIECES, ...made].map((text) => text.trim()).filter((text) => text !== '')
}

function tree(element, ...children) {
  for (const child of children)
    element.append(
      typeof child === 'string'
        ? { nodeType: 3, data: child, firstChild: null, parentNode: null, nextSibling: null }
        : child,
    )
  return element
}

/** By name, how a text is put into a tree: (text, (name, attributes?) => element). */
export const places = {
  paragraph: (text, make) => tree(make('body'), tree(make('p'), text)),
  heading: (text, make) => tree(make('body'), tree(make('h2'), text)),
  item: (text, make) => tree(make('body'), tree(make('ul'), tree(make('li'), text))),
  'after a break': (text, make) => tree(make('body'), tree(make('p'), 'x', make('br'), text)),
  link: (text, make) => tree(make('body'), tree(make('p'), 'x ', tree(make('a', { href: '/l' }), text), ' y')),
  bold: (text, make) => tree(make('body'), tree(make('p'), 'x ', tree(make('b'), text), ' y')),
  'part of a word': (text, make) => tree(make('body'), tree(make('p'), 'x', tree(make('i'), text), 'y')),
  cell: (text, make) =>
    tree(
      make('body'),
      tree(
        make('table'),
        tree(make('tr'), tree(make('th'), 'a'), tree(make('th'), 'b')),
        tree(make('tr'), tree(make('td'), text), tree(make('td'), 'c')),
      ),
    ),
  'code in a cell': (text, make) =>
    tree(
      make('body'),
      tree(
        make('table'),
        tree(make('tr'), tree(make('th'), 'a'), tree(make('th'), 'b')),
        tree(make('tr'), tree(make('td'), tree(make('code'), text)), tree(make('td'), 'c')),
      ),
    ),
  code: (text, make) => tree(make('body'), tree(make('p'), 'x ', tree(make('code'), text), ' y')),
}
