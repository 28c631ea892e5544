const page = (body: string): Buffer => Buffer.from(`<!DOCTYPE html><html><head><title>t</title></head><body>${body}`)

/** A million elements, each in the one before. */
export const nestedElements = (tag = 'div', depth = 1_000_000): Buffer => page(`<${tag}>`.repeat(depth) + 'The end.')

/** As many side by side. */
export const manyElements = (count = 1_500_000): Buffer => page('<p>a<b>b</b>'.repeat(count))

/** Formatting that is opened anew in every paragraph, as the standard has it: the square of what is written. */
export const reopenedFormatting = (count = 60_000): Buffer =>
  page(Array.from({ length: count }, (_, index) => `<p><font color="${index}">`).join(''))

/** One element with a million attributes. */
export const manyAttributes = (count = 1_000_000): Buffer =>
  page(`<p ${Array.from({ length: count }, (_, index) => `a${index}=b`).join(' ')}>text`)

/** A hundred thousand cells that each span a thousand rows and a thousand columns. */
export const spanningCells = (count = 100_000): Buffer =>
  page(`<table>${'<tr><td rowspan="1000" colspan="1000">cell</td></tr>'.repeat(count)}</table>`)

/** Document types whose entities grow; no reader of HTML may follow them. */
export const expandingPage = (): Buffer => {
  const levels = Array.from({ length: 9 }, (_, level) => `<!ENTITY e${level + 1} "${`&e${level};`.repeat(10)}">`)
  return Buffer.from(`<?xml version="1.0"?><!DOCTYPE html [<!ENTITY e0 "laugh">${levels.join('')}]><html><body>&e9;`)
}

/** Nothing but beginnings of what never ends. */
export const unfinished = (text: string, bytes = 10_000_000): Buffer =>
  page(text.repeat(Math.floor(bytes / text.length)))
