const FILE_NAME = /^[^\s/]{1,200}\.(?:png|jpe?g|gif|bmp|tiff?|svg|emf|wmf|webp|heic)$/i
/** What Office adds to words that a machine wrote. */
const MACHINE_NOTE =
  /\s*(?:Description automatically generated(?: with \w+ confidence)?|AI-generated content may be incorrect)\.?\s*$/i

/** The words in place of a picture; '' where they are no words but the name of its file. */
export function alternativeText(description: string | null | undefined): string {
  const text = (description ?? '').replaceAll(/\s+/g, ' ').replace(MACHINE_NOTE, '').trim()
  return FILE_NAME.test(text) ? '' : text
}
