import type { DocumentKind } from '@multi-model-gateway/document-engine/model/document.js'

const OPEN_XML = 'application/vnd.openxmlformats-officedocument'

/** The usual media type of each kind: what a result says where nobody else said anything. */
export const KIND_TYPES = {
  html: 'text/html',
  pdf: 'application/pdf',
  docx: `${OPEN_XML}.wordprocessingml.document`,
  xlsx: `${OPEN_XML}.spreadsheetml.sheet`,
  pptx: `${OPEN_XML}.presentationml.presentation`,
  csv: 'text/csv',
  markdown: 'text/markdown',
  text: 'text/plain',
} as const satisfies Record<DocumentKind, string>

/** With these a request's body is the document itself. What it really is, its bytes say. */
export const BODY_TYPES: readonly string[] = [
  ...Object.values(KIND_TYPES),
  'application/xhtml+xml',
  'application/octet-stream',
]
