import { schemaOf } from '../core/dto.js'
import type { EndpointSpec } from '../core/endpoint.js'
import { answer, listOf } from '../core/json-schema.js'
import { estimateChat } from '../limits/estimate-usage.js'
import { EmbeddingsRequestDto } from './embeddings.dto.js'

export const EMBEDDINGS = {
  name: 'embeddings',
  method: 'POST',
  path: '/v1/embeddings',
  dialect: 'openai',
  capability: 'embeddings',
  billing: { records: ['request'], usageClass: 'embedding', model: undefined },
  estimate: estimateChat,
  metricFamily: 'embeddings',
  keyHeaders: ['authorization'],
  rateLimit: 'counted',
  bodyLimit: 'jsonBodyBytes',
  loggedPath: 'path',
  documentation: {
    operationId: 'createEmbeddings',
    tag: 'embeddings',
    summary: 'Vectors of texts',
    description: 'One vector for each text.',
    body: { 'application/json': schemaOf(EmbeddingsRequestDto, 'EmbeddingsRequest', 'Texts') },
    answer: {
      description: 'A list of embedding objects',
      content: {
        'application/json': answer('Embeddings', 'Vectors', { data: listOf({}, 'In the order of the texts') }),
      },
    },
  },
} as const satisfies EndpointSpec
