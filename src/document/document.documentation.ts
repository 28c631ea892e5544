import { schemaOf } from '../core/dto.js'
import type { RouteDocumentation } from '../core/endpoint.js'
import { answer, described, type Schema, TEXT } from '../core/json-schema.js'
import {
  BODY_TYPES,
  DocumentFormDto,
  DocumentUrlDto,
  noCacheDocumentation,
  timeoutDocumentation,
  timeoutText,
  flagText,
} from './document.dto.js'

/** Specification: Document parse result. */
const DOCUMENT = answer('DocumentAnswer', 'A document that was read', {
  code: { type: 'integer', const: 0, description: '0 means success' },
  message: described('SUCCEED'),
  data: answer('ParsedDocument', 'The document', {
    metadata: answer('DocumentMetadata', 'What is known of the document', {
      url: described('After redirects; empty for a file'),
      title: described('Empty where it has none'),
      description: described('Empty where it has none'),
      keywords: described('With commas; empty where it has none'),
      siteName: described('Empty where it has none'),
      favicon: described('Empty where it has none'),
      statusCode: { type: 'integer', description: 'Of the server of the document; 200 for a file' },
      contentType: described('As its server, or its sender, declares it'),
      cached: { type: 'integer', enum: [0, 1], description: '1 when the document was read before' },
      language: described('BCP 47 tag that the document declares; empty where it has none'),
      warnings: {
        type: 'array',
        description: 'What the result lacks; empty when nothing is known to be missing',
        items: answer('DocumentWarning', 'Something that could not be read, or was left out', {
          code: described('pages_without_text'),
          message: described('For people'),
          'pages?': { type: 'array', items: { type: 'integer' }, description: 'Pages or slides that it is about' },
        }),
      },
    }),
    html: described('The main content of a page; otherwise empty'),
    markdown: described('The document as Markdown'),
  }),
})

const FILE = { ...TEXT, format: 'binary', description: 'The document itself' } as const satisfies Schema

export const DOCUMENT_PARSE_DOCUMENTATION: RouteDocumentation = {
  operationId: 'parseDocument',
  tag: 'document',
  summary: 'Any page or file to Markdown',
  description: 'The document is named by its URL, sent in a form, or is the body itself. What it is, its bytes say.',
  parameters: [
    {
      in: 'query',
      name: 'timeout',
      description: `With a document as the body. ${timeoutDocumentation.description}`,
      schema: timeoutText.schema ?? {},
    },
    {
      in: 'query',
      name: 'no_cache',
      description: `With a document as the body. ${noCacheDocumentation.description}`,
      schema: { ...flagText.schema, default: false },
    },
    { in: 'header', name: 'Cache-Control', description: '`no-cache` means the same as no_cache', schema: TEXT },
  ],
  body: {
    'application/json': schemaOf(DocumentUrlDto, 'DocumentUrl', 'The place of a document'),
    'multipart/form-data': {
      ...schemaOf(DocumentFormDto, 'DocumentForm', 'A document, or its place: one of the two'),
      oneOf: [{ required: ['file'] }, { required: ['url'] }],
    },
    ...Object.fromEntries(BODY_TYPES.map((type) => [type, FILE])),
  },
  answer: { description: 'The document as Markdown', content: { 'application/json': DOCUMENT } },
  errors: ['unprocessable', 'upstream_failed', 'upstream_timeout'],
}
