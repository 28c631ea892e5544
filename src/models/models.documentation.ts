import { MODEL_CLASS_NAMES } from '../config/model-classes.js'
import type { ParameterDocumentation, RouteDocumentation } from '../core/endpoint.js'
import { answer, constant, described, listOf, nullable, type Schema, TEXT } from '../core/json-schema.js'
import { PAGE_SIZE } from './models-page.js'

const DETAILS = answer('ModelDetails', 'What the gateway knows of a model', {
  class: described('Its class', { ...TEXT, enum: MODEL_CLASS_NAMES }),
  capabilities: listOf(TEXT, 'What it can be asked for'),
  'dialects?': listOf(TEXT, 'In which it can be asked, by translation or not; only where some are translated'),
  'voices?': listOf(TEXT, 'Names for voice; others may be relayed'),
  'formats?': listOf(TEXT, 'Values of response_format'),
})

const MODEL = answer('Model', 'A model that the key may use', {
  id: described('The name to be sent as model'),
  object: constant('model'),
  created: { type: 'integer', description: 'Unix seconds; 0 where the day is not known' },
  owned_by: described('The kinds of upstreams that serve it'),
  x_gateway: DETAILS,
})

const MODEL_LIST = answer('ModelList', 'The models that the key may use, without those of the messages routes', {
  object: constant('list'),
  data: listOf(MODEL, 'All of them'),
})

/** Members of the upstream's form of which nothing is known here. */
const UNKNOWN: Schema = { type: 'null', description: 'Not known' }

const MESSAGES_MODEL = answer('MessagesModel', 'A model of the messages routes that the key may use', {
  type: constant('model'),
  id: described('The name to be sent as model'),
  display_name: described('Its name for people'),
  created_at: described('The beginning of 1970 where the day is not known', { ...TEXT, format: 'date-time' }),
  capabilities: UNKNOWN,
  max_input_tokens: UNKNOWN,
  max_tokens: UNKNOWN,
  lifecycle: constant('active', 'It is served'),
  line: UNKNOWN,
  deprecated_at: UNKNOWN,
  retires_at: UNKNOWN,
  x_gateway: DETAILS,
})

const MESSAGES_MODEL_LIST = answer(
  'MessagesModelList',
  'A page of the models of the messages routes, the newest first',
  {
    data: listOf(MESSAGES_MODEL, 'Those of the page'),
    has_more: { type: 'boolean', description: 'Whether further ones follow in the direction that was asked for' },
    first_id: nullable(described('The first of the page; null where it is empty')),
    last_id: nullable(described('The last of the page; null where it is empty')),
  },
)

const BOTH_FORMS =
  'Clients that send anthropic-version or x-api-key get the form of the messages dialect, errors too, and only models of its routes; all ' +
  'others get the form of the chat dialect and all other models.'

const VERSION: ParameterDocumentation = {
  in: 'header',
  name: 'anthropic-version',
  description: 'Sent by clients of the messages dialect',
  schema: { ...TEXT, example: '2023-06-01' },
}

const CURSOR: Schema = { ...TEXT, minLength: 1 }

export const MODELS_DOCUMENTATION: RouteDocumentation = {
  operationId: 'listModels',
  tag: 'account',
  summary: 'The models this key may use',
  description: `Only models that a channel serves and that the key has access to. ${BOTH_FORMS}`,
  parameters: [
    VERSION,
    {
      in: 'query',
      name: 'limit',
      description: 'Models of a page, for clients of messages',
      schema: {
        type: 'integer',
        minimum: PAGE_SIZE.minimum,
        maximum: PAGE_SIZE.maximum,
        default: PAGE_SIZE.fallback,
      },
    },
    { in: 'query', name: 'after_id', description: 'The page behind this model; not with before_id', schema: CURSOR },
    { in: 'query', name: 'before_id', description: 'The page that ends before this model', schema: CURSOR },
  ],
  answer: {
    description: 'The models, in the form of the client',
    content: { 'application/json': { anyOf: [MODEL_LIST, MESSAGES_MODEL_LIST] } },
  },
}

export const MODEL_DOCUMENTATION: RouteDocumentation = {
  operationId: 'getModel',
  tag: 'account',
  summary: 'One model this key may use',
  description: `As in the list. ${BOTH_FORMS}`,
  parameters: [
    VERSION,
    { in: 'path', name: 'model', description: 'The id of the model', schema: { ...TEXT, minLength: 1 } },
  ],
  answer: {
    description: 'The model, in the form of the client',
    content: { 'application/json': { anyOf: [MODEL, MESSAGES_MODEL] } },
  },
  errors: ['unknown_model'],
}
