import type { RouteDocumentation } from '../core/endpoint.js'
import { answer, described, eventsOf, listOf, type Schema, TEXT, UNIX_MS } from '../core/json-schema.js'
import { IMAGE_STATUSES } from '../providers/contract.js'
import { TASK_ID } from './task-id.js'

const TIME = described(`${UNIX_MS.description}; 0 until known`, UNIX_MS)

const BUTTON = answer('ImageButton', 'What may be done next with the picture', {
  'customId?': described('Prefix, operation, index and job, e.g. MJ::JOB::upsample::1::<uuid>'),
  'emoji?': TEXT,
  'label?': TEXT,
  'type?': { type: 'integer' },
  'style?': { type: 'integer' },
})

/** Specification: Image task. */
const IMAGE_TASK: Schema = answer('ImageTask', 'An image task as it stands', {
  id: described('Of the task'),
  action: { ...described('What is made'), example: 'IMAGINE' },
  customId: described('Of the button that began it'),
  botType: described('Which of the upstream’s bots makes it'),
  prompt: described('What is to be seen'),
  promptEn: described('The same in English'),
  description: described('Of the state, for people'),
  state: described('Whatever the maker of the task gave it'),
  submitTime: TIME,
  startTime: TIME,
  finishTime: TIME,
  imageUrl: described('A preview while the task runs'),
  status: { ...described('How far the task is'), examples: [...IMAGE_STATUSES] },
  progress: { ...described('A percentage, or empty'), example: '31%' },
  failReason: described('Why it failed'),
  buttons: listOf(BUTTON, 'What may be done next'),
  maskBase64: described('Of the part that is painted anew'),
  properties: answer('ImageTaskProperties', 'More about the task', {
    'finalPrompt?': described('As it was used'),
    'finalZhPrompt?': described('The same in Chinese'),
    'seed?': described('In answers to image-seed'),
  }),
})

const ID = {
  in: 'path',
  name: 'id',
  description: 'The id of the task',
  schema: { ...TEXT, pattern: TASK_ID.source },
} as const

const COMMON = {
  tag: 'image',
  parameters: [ID],
  errors: ['forbidden_model', 'not_found', 'upstream_failed', 'upstream_timeout'],
} as const satisfies Partial<RouteDocumentation>

export const IMAGE_FETCH_DOCUMENTATION: RouteDocumentation = {
  ...COMMON,
  operationId: 'getImageTask',
  summary: 'One image task',
  description: 'The task as its upstream shows it at this moment.',
  answer: { description: 'The task', content: { 'application/json': IMAGE_TASK } },
}

export const IMAGE_SEED_DOCUMENTATION: RouteDocumentation = {
  ...COMMON,
  operationId: 'getImageSeed',
  summary: 'One image task with the seed of its picture in properties.seed',
  description: 'May take a minute, as the upstream has to ask for the seed.',
  answer: { description: 'The task, with its seed', content: { 'application/json': IMAGE_TASK } },
}

export const IMAGE_EVENTS_DOCUMENTATION: RouteDocumentation = {
  ...COMMON,
  operationId: 'watchImageTask',
  summary: 'The changes of one image task as they happen',
  description: 'An event stream that ends with the task.',
  answer: {
    description: '`event: task` with the task object as data at each change, up to the last one',
    content: { 'text/event-stream': eventsOf(IMAGE_TASK) },
  },
}
