import type { EndpointSpec } from '../core/endpoint.js'
import { DOCUMENT_PARSE_DOCUMENTATION } from './document.documentation.js'

/** Read here or by a reader, which the caller does not choose: a document is priced as a document. */
export const DOCUMENT_PARSE = {
  name: 'document.parse',
  method: 'POST',
  path: '/v1/document/parse',
  dialect: 'task',
  capability: 'none',
  billing: { records: ['request'], usageClass: 'document', model: 'documents' },
  estimate: 'none',
  metricFamily: 'document',
  keyHeaders: ['authorization'],
  rateLimit: 'counted',
  bodyLimit: 'documentBytes',
  loggedPath: 'path',
  documentation: DOCUMENT_PARSE_DOCUMENTATION,
} as const satisfies EndpointSpec
