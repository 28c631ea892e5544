import { schemaOf } from '../core/dto.js'
import type { RouteDocumentation } from '../core/endpoint.js'
import { answer, described, listOf, type Schema, TEXT } from '../core/json-schema.js'
import { CallbackDeliveryDto, RedeliveryDto, WEBHOOK_ID } from './callback.dto.js'

/** The envelope of every success in the task dialect. */
export const envelopeOf = (title: string, description: string, data: Schema): Schema =>
  answer(title, description, {
    code: { type: 'integer', const: 0, description: '0 means success' },
    message: described('SUCCEED'),
    request_id: described('The same as the header x-request-id'),
    data,
  })

/** Why reading a task may fail. */
export const TASK_ERRORS = ['not_found', 'upstream_failed', 'upstream_timeout'] as const

export const TASK_ID = {
  in: 'path',
  name: 'id',
  description: 'The task_id, or the external_task_id',
  schema: { ...TEXT, minLength: 1, maxLength: 256 },
} as const

const DELIVERY = schemaOf(CallbackDeliveryDto, 'CallbackDelivery', 'One event of a task and the state of its delivery')
const REDELIVERY = schemaOf(RedeliveryDto, 'Redelivery', 'An event that is sent again')

export const callbacksDocumentation = (operationId: string, kind: string): RouteDocumentation => ({
  operationId,
  tag: 'video',
  summary: `The events sent, or to be sent, about one ${kind} task`,
  description: 'The oldest first, with how far their deliveries are.',
  parameters: [TASK_ID],
  answer: {
    description: 'All events of the task',
    content: {
      'application/json': envelopeOf('CallbackList', 'The events of a task', listOf(DELIVERY, 'The oldest first')),
    },
  },
  errors: TASK_ERRORS,
})

export const REDELIVER_DOCUMENTATION: RouteDocumentation = {
  operationId: 'redeliverCallback',
  tag: 'video',
  summary: 'Send one event again, on a schedule begun anew',
  description: 'In whatever state its delivery is.',
  parameters: [
    {
      in: 'path',
      name: 'webhookId',
      description: 'The webhook_id of the event',
      schema: { ...TEXT, pattern: WEBHOOK_ID.source },
    },
  ],
  answer: {
    description: 'The event that is sent again',
    content: { 'application/json': envelopeOf('RedeliveryAnswer', 'An event that is sent again', REDELIVERY) },
  },
  errors: TASK_ERRORS,
}
