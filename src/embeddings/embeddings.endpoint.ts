import { schemaOf } from '../core/dto.js'
import type { EndpointSpec } from '../core/endpoint.js'
import { answer, constant, COUNT, described, listOf, TEXT } from '../core/json-schema.js'
import { estimateEmbeddings } from '../limits/estimate-usage.js'
import { EmbeddingsRequestDto, withoutInput } from './embeddings.dto.js'

/** Clients that count tokens themselves send these in place of texts: the upstream takes 300,000 in one request. */
export const EMBEDDINGS_BODY = { reduced: withoutInput, maximumValues: 524_288 } as const

const EMBEDDING = answer('Embedding', 'The vector of one text', {
  object: constant('embedding'),
  index: { ...COUNT, description: 'Of the text' },
  embedding: {
    description: 'Numbers, or Base64 with encoding_format base64',
    anyOf: [{ type: 'array', items: { type: 'number' } }, TEXT],
  },
})

const EMBEDDINGS_ANSWER = answer('Embeddings', 'Vectors', {
  object: constant('list'),
  data: listOf(EMBEDDING, 'In the order of the texts'),
  model: described('That made them'),
  'usage?': answer('EmbeddingsUsage', 'Tokens that were used', {
    prompt_tokens: { ...COUNT, description: 'Of the texts' },
    total_tokens: { ...COUNT, description: 'The same' },
  }),
})

export const EMBEDDINGS = {
  name: 'embeddings',
  method: 'POST',
  path: '/v1/embeddings',
  dialect: 'openai',
  capability: 'embeddings',
  billing: { records: ['request'], usageClass: 'embedding', model: undefined },
  estimate: estimateEmbeddings,
  metricFamily: 'embeddings',
  keyHeaders: ['authorization'],
  rateLimit: 'counted',
  bodyLimit: 'jsonBodyBytes',
  loggedPath: 'path',
  documentation: {
    operationId: 'createEmbeddings',
    tag: 'embeddings',
    summary: 'Vectors of texts',
    description: 'One vector for each text, for search by meaning.',
    body: { 'application/json': schemaOf(EmbeddingsRequestDto, 'EmbeddingsRequest', 'Texts, or tokens of texts') },
    answer: { description: 'A vector for each text', content: { 'application/json': EMBEDDINGS_ANSWER } },
  },
} as const satisfies EndpointSpec
