import { attributeOf, beginningOf, descendantsOf, tagOf } from '../markdown/markup-node.js'
import type { HtmlElement } from './html-node.js'

const LONGEST_LABEL = 60

/** Labels of adverts, of answers to comments, of shares, and of links within a page, in the languages that most pages are in. */
const LABELS = [
  String.raw`(?:(?:story|article) continues (?:below|after)(?: this)? )?advertisements?`,
  'sponsored(?: content)?|anzeige|werbung|publicité|publicidad|pubblicità|publicidade|advertentie|reklama|реклама|広告|广告|廣告',
  'reply|reply to this(?: comment)?|antworten|répondre|responder|rispondi|beantwoorden|ответить|返信|回复|回覆',
  String.raw`share(?: this)?(?: (?:article|page|post|story))?|(?:share|tweet|post) (?:on|to|via) \S+|tweet(?: this)?|pin it|copy link`,
  'skip to (?:the )?(?:main )?(?:content|navigation|search|footer)|jump to (?:the )?(?:content|navigation|search)',
  'zum inhalt(?: springen)?|aller au contenu(?: principal)?|ir al contenido(?: principal)?|back to (?:the )?top|nach oben',
]
const LABEL = new RegExp(`^(?:${LABELS.join('|')})$`, 'iu')
/** There the same words may be what the page is about. */
const CONTENT_TAG = /^(?:li|dt|dd|td|th|pre|code|h[1-6])$/

/** Whether a block in such an element is the label of something that a page is used with, such as "Advertisement" or "Reply". */
export function isControlLabel(text: string, tag: string): boolean {
  return text.length <= LONGEST_LABEL && !CONTENT_TAG.test(tag) && LABEL.test(text)
}

const EDIT =
  /^\[?\s{0,9}(?:edit(?: source| section)?|bearbeiten|quelltext bearbeiten|modifier(?: le code)?|editar|modifica|bewerken|править|編集|编辑|編輯)\s{0,9}[|\]]?/iu
/** Not the heading itself, which may be about editing. */
const EDIT_TARGET = /^[^#].*(?:\bedit\b|\bveaction=)/i

/** Whether an element within a heading is a link to change what stands below it: "[edit]" of wikis, with its brackets. */
export function isEditLink(element: HtmlElement): boolean {
  if (!EDIT.test(beginningOf(element).trim())) return false
  if (EDIT_TARGET.test(attributeOf(element, 'href'))) return true
  for (const node of descendantsOf(element)) {
    if (tagOf(node) === 'a') return EDIT_TARGET.test(attributeOf(node, 'href'))
  }
  return false
}
