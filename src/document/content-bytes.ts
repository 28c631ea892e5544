import type { LimitsSection } from '../config/settings.js'

/** JSON text of a document, and HTML beside Markdown, are longer than what they were made of. */
const CONTENT_FACTOR = 4
/** Reading JSON of this length stops all other work of the process for a quarter of a second. */
const MOST_PARSED_BYTES = 32 * 1024 * 1024

/** The longest content of a document that its engine may hand over, as JSON text. */
export const contentBytes = ({ documentBytes }: Pick<LimitsSection, 'documentBytes'>): number =>
  documentBytes * CONTENT_FACTOR

/** The longest answer of an upstream reader, which is read as JSON here. */
export const answerBytes = (limits: Pick<LimitsSection, 'documentBytes'>): number =>
  Math.min(contentBytes(limits), MOST_PARSED_BYTES)
