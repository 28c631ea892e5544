import { schemaOf } from '../core/dto.js'
import type { EndpointSpec } from '../core/endpoint.js'
import { answer, listOf } from '../core/json-schema.js'
import { estimateChat } from '../limits/estimate-usage.js'
import { ModerationsRequestDto } from './moderations.dto.js'

export const MODERATIONS = {
  name: 'moderations',
  method: 'POST',
  path: '/v1/moderations',
  dialect: 'openai',
  capability: 'moderations',
  billing: { records: ['request'], usageClass: 'moderation', model: undefined },
  estimate: estimateChat,
  metricFamily: 'moderations',
  keyHeaders: ['authorization'],
  rateLimit: 'counted',
  bodyLimit: 'jsonBodyBytes',
  loggedPath: 'path',
  documentation: {
    operationId: 'createModerations',
    tag: 'moderations',
    summary: 'Judges texts',
    description: 'Says of each text whether it is harmful.',
    body: { 'application/json': schemaOf(ModerationsRequestDto, 'ModerationsRequest', 'Texts') },
    answer: {
      description: 'One judgement for each text',
      content: {
        'application/json': answer('Moderations', 'Judgements', { data: listOf({}, 'In the order of the texts') }),
      },
    },
  },
} as const satisfies EndpointSpec
