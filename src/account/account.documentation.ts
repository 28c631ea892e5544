import { schemaOf } from '../core/dto.js'
import type { RouteDocumentation } from '../core/endpoint.js'
import { answer, constant, COUNT, described } from '../core/json-schema.js'
import { LIMIT_NAMES } from '../core/quota.js'
import {
  CURSOR_PARAMETER,
  GROUP_PARAMETER,
  LIMIT_PARAMETER,
  LONGEST_PERIOD_MS,
  periodParameters,
  UsageRecordsDto,
  UsageSumsDto,
} from '../usage/usage.dto.js'

const LIMIT_STATE = answer('LimitState', 'How one limit stands', {
  limit: { type: 'integer', minimum: 1, description: 'All of it' },
  remaining: { ...COUNT, description: 'What is left' },
  'reset_seconds?': { ...COUNT, description: 'Until all of it is there again; 0 when all of it is' },
  'in_use?': { ...COUNT, description: 'Of limits that are held and given back' },
})

const LIMITS = answer('Limits', 'The limits of a key; only those that it has', {
  object: constant('limits'),
  scope: { ...described('Whose limits they are'), example: 'key:team-a' },
  shared: { type: 'boolean', description: 'All replicas count together at this moment' },
  limits: {
    title: 'LimitStates',
    type: 'object',
    description: 'By the name of the limit',
    additionalProperties: true,
    properties: Object.fromEntries(LIMIT_NAMES.map((name) => [name, LIMIT_STATE])),
  },
})

export const LIMITS_DOCUMENTATION: RouteDocumentation = {
  operationId: 'getLimits',
  tag: 'account',
  summary: "The limits of the caller's key, and what is left of them",
  description: 'Asking counts for none of them.',
  answer: { description: 'Only limits that the key has', content: { 'application/json': LIMITS } },
}

export const USAGE_DOCUMENTATION: RouteDocumentation = {
  operationId: 'getUsage',
  tag: 'account',
  summary: 'What this key has used, and what it cost',
  description: 'Sums of the records of a period, by group.',
  parameters: [...periodParameters(LONGEST_PERIOD_MS), GROUP_PARAMETER],
  answer: {
    description: 'One sum for each group',
    content: { 'application/json': schemaOf(UsageSumsDto, 'UsageSums', 'Sums of usage') },
  },
  errors: ['not_found'],
}

export const USAGE_RECORDS_DOCUMENTATION: RouteDocumentation = {
  operationId: 'listUsageRecords',
  tag: 'account',
  summary: 'The single records of this key, newest first',
  description: 'Page by page: next_cursor of an answer is the cursor of the next question.',
  parameters: [...periodParameters(LONGEST_PERIOD_MS), LIMIT_PARAMETER, CURSOR_PARAMETER],
  answer: {
    description: 'A page of records',
    content: { 'application/json': schemaOf(UsageRecordsDto, 'UsageRecords', 'A page of usage records') },
  },
  errors: ['not_found'],
}
