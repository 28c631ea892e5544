import type { RouteSpec } from '../core/endpoint.js'
import { described, type Schema, TEXT } from '../core/json-schema.js'
import { LIMIT_HEADERS } from '../limits/limit-errors.js'

export const DESCRIPTION =
  'Many AI upstreams behind one address and one key. Unknown fields of requests travel on to the upstream, and those of ' +
  'answers come back; what is described here is what the gateway checks and promises.'

/** In the order of the document. */
export const TAGS = [
  { name: 'chat', description: 'Chat completions' },
  { name: 'responses', description: 'The Responses API, and what is kept of it' },
  { name: 'messages', description: 'Messages-style chat' },
  { name: 'embeddings', description: 'Vectors of texts' },
  { name: 'audio', description: 'Speech, transcription and translation' },
  { name: 'realtime', description: 'Realtime voice conversations; asyncapi.yaml describes their events' },
  { name: 'video', description: 'Video tasks and the callbacks about them' },
  { name: 'image', description: 'Image tasks' },
  { name: 'document', description: 'Documents to Markdown' },
  { name: 'account', description: 'What a key may use, and what it has used' },
  { name: 'admin', description: 'For operators, with the admin key' },
  { name: 'health', description: 'For probes' },
]

const ADMIN_PATH = '/admin/'

/** Keys are opaque: nothing about them can be read by a client. */
export const SECURITY_SCHEMES = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'opaque',
    description: 'An API key of this gateway, or one of an upstream where the operator allows that',
  },
  'x-api-key': {
    type: 'apiKey',
    in: 'header',
    name: 'x-api-key',
    description: 'The same key, as messages clients send it',
  },
  adminKey: { type: 'http', scheme: 'bearer', bearerFormat: 'opaque', description: "The operator's admin key" },
} as const

/** Any one of these schemes is enough; empty = no key is needed. */
export function securityOf({ path, keyHeaders }: RouteSpec): readonly Readonly<Record<string, unknown>>[] {
  if (path.startsWith(ADMIN_PATH)) return [{ adminKey: [] }]
  const schemes = { authorization: 'bearer', 'x-api-key': 'x-api-key', 'sec-websocket-protocol': undefined } as const
  return keyHeaders.flatMap((header) => {
    const scheme = schemes[header]
    return scheme === undefined ? [] : [{ [scheme]: [] }]
  })
}

const header = (schema: Schema): { readonly description: string; readonly schema: Schema } => {
  const { description = '', ...form } = schema
  return { description, schema: form }
}

/** Headers of answers, by their own names. */
export const HEADERS = {
  'x-request-id': header(described('Names the request in logs and usage records; one that was sent comes back')),
  'retry-after': header({
    type: 'integer',
    minimum: 1,
    description: 'Seconds until the same request may be sent again',
  }),
  'x-should-retry': header({ ...TEXT, const: 'false', description: 'Sent where a repetition cannot help' }),
  allow: header(described('The methods that the path has')),
  ...Object.fromEntries(LIMIT_HEADERS.map(({ name, schema }) => [name, header(schema)])),
}
