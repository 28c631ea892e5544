/** A box drawn by a character in front of an item makes it a task. */
export function withBox(html: string): string {
  return html.replace(
    /^((?:<p>)?)\s?([☐☑☒])\s/,
    (_start, tag: string, box: string) => `${tag}<input type="checkbox"${box === '☐' ? '' : ' checked'}> `,
  )
}

/** The lines of a paragraph that is code throughout, as HTML for `pre`; undefined for others. */
export function codeLines(html: string): string | undefined {
  if (!html.startsWith('<code>') || !/^(?:<code>[^<]*<\/code>|<br>|\s)*$/.test(html)) return undefined
  return html.replaceAll('<br>', '\n').replaceAll(/<\/?code>/g, '')
}

/** Adjacent pieces of code as one, with the blanks between them. */
export function joinedCode(html: string): string {
  return html.replaceAll(/<\/code>(\s*)<code>/g, '$1')
}
