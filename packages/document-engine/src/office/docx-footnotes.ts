import type { OfficeDocument, OfficeElement } from './office-dom.js'

/** Noncharacters, which no text holds, around the number of a note while the text becomes Markdown. */
const OPEN = '\ufdd0'
const CLOSE = '\ufdd1'

/**
 * Marks the references to notes and the notes themselves in HTML as mammoth makes it: `<sup><a
 * href="#footnote-7">[1]</a></sup>` in the text, and at the end a list of notes, in the order of their references.
 */
export function markFootnotes(document: OfficeDocument): void {
  const notes = [...document.querySelectorAll('li[id^="footnote-"], li[id^="endnote-"]')]
  for (const reference of document.querySelectorAll('a[id^="footnote-ref-"], a[id^="endnote-ref-"]')) {
    const number = /\d+/.exec(reference.textContent)?.[0] ?? ''
    const parent = reference.parentElement
    const isRaised = parent?.localName === 'sup' && parent.children.length === 1
    const marked = isRaised ? parent : reference
    marked.replaceWith(mark(number))
  }
  notes.forEach((note, index) => {
    note.parentElement?.before(noteParagraph(document, note, `${mark(String(index + 1))}: `))
  })
  notes[0]?.parentElement?.remove()
}

/** Makes GFM footnotes of the marks. */
export function restoreFootnotes(markdown: string): string {
  return markdown.replaceAll(/\ufdd0(\d*)\ufdd1/g, '[^$1]')
}

function mark(number: string): string {
  return `${OPEN}${number}${CLOSE}`
}

/** One paragraph of all that a note has: in GFM whatever follows would have to be indented. */
function noteParagraph(document: OfficeDocument, note: OfficeElement, label: string): OfficeElement {
  for (const back of note.querySelectorAll('a[href^="#footnote-ref-"], a[href^="#endnote-ref-"]')) back.remove()
  const paragraph = document.createElement('p')
  paragraph.append(label)
  for (const child of [...note.childNodes]) {
    paragraph.append(...(child.localName === 'p' ? child.childNodes : [child]), ' ')
  }
  return paragraph
}
