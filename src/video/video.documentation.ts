import { schemaOf } from '../core/dto.js'
import type { RouteDocumentation } from '../core/endpoint.js'
import { answer, described, eventsOf, listOf, type Schema, TEXT, UNIX_MS } from '../core/json-schema.js'
import { envelopeOf, TASK_ERRORS, TASK_ID } from '../tasks/task.documentation.js'
import {
  IDEMPOTENCY_KEY,
  MultiImageVideoDto,
  PAGE_NUMBER,
  PAGE_SIZE,
  type PageParameter,
  TextVideoDto,
} from './video.dto.js'

const STATUS = described('submitted, processing, succeed or failed')

const MADE = {
  task_id: described('Of the task'),
  task_status: STATUS,
  created_at: UNIX_MS,
  updated_at: UNIX_MS,
} as const

const CREATED_TASK = answer('CreatedVideoTask', 'A task that has been made', MADE)

/** Specification: Task object. */
const TASK = answer('VideoTask', 'A video task as it stands', {
  'task_id?': MADE.task_id,
  'task_status?': STATUS,
  'task_status_msg?': described('The reason of a failure'),
  'task_info?': answer('VideoTaskInfo', 'What its maker said of it', {
    'external_task_id?': described('The id that the caller gave it'),
  }),
  'task_result?': answer('VideoTaskResult', 'What was made', {
    'videos?': listOf(
      answer('Video', 'A video', {
        'id?': described('Of the video'),
        'url?': described('Where it can be fetched, for some time'),
        'watermark_url?': described('The same with a watermark'),
        'duration?': described('Seconds'),
      }),
      'As soon as the task has succeeded',
    ),
  }),
  'watermark_info?': { description: 'Whether a watermarked result is made as well' },
  'final_unit_deduction?': described('What the upstream charges, in its own units'),
  'created_at?': UNIX_MS,
  'updated_at?': UNIX_MS,
})

const page = ({ name, maximum, fallback }: PageParameter, description: string) =>
  ({ in: 'query', name, description, schema: { type: 'integer', minimum: 1, maximum, default: fallback } }) as const

const IDEMPOTENCY_KEY_HEADER = {
  in: 'header',
  name: 'Idempotency-Key',
  description: 'Repeats under the same key get the first answer again, for 24 hours',
  schema: { ...TEXT, pattern: IDEMPOTENCY_KEY.source },
} as const

interface KindWords {
  /** As in `createTextVideo`. */
  readonly name: string
  readonly kind: string
  readonly from: string
  readonly request: Schema
}

/** The four routes of a kind of video. */
const videoDocumentation = ({ name, kind, from, request }: KindWords) =>
  ({
    create: {
      operationId: `create${name}`,
      tag: 'video',
      summary: `Video from ${from}`,
      description: 'Makes a task and answers at once; the video comes later.',
      parameters: [IDEMPOTENCY_KEY_HEADER],
      body: { 'application/json': request },
      answer: {
        description: 'The task that has been made',
        content: {
          'application/json': envelopeOf('CreatedVideoTaskAnswer', 'A task that has been made', CREATED_TASK),
        },
        headers: {
          'x-idempotent-replay': {
            description: '`true` when the answer was given before under the same Idempotency-Key',
            schema: { ...TEXT, const: 'true' },
          },
        },
      },
      errors: ['idempotency_running'],
    },
    list: {
      operationId: `list${name}s`,
      tag: 'video',
      summary: `Your ${kind} tasks, newest first`,
      description: 'Page by page, as they are known here.',
      parameters: [page(PAGE_NUMBER, 'The number of the page'), page(PAGE_SIZE, 'Tasks on a page')],
      answer: {
        description: 'A page of tasks',
        content: {
          'application/json': envelopeOf('VideoTaskList', 'A page of tasks', listOf(TASK, 'The newest first')),
        },
      },
      errors: TASK_ERRORS,
    },
    find: {
      operationId: `get${name}`,
      tag: 'video',
      summary: `One ${kind} task`,
      description: 'The task as its upstream shows it at this moment.',
      parameters: [TASK_ID],
      answer: {
        description: 'The task',
        content: { 'application/json': envelopeOf('VideoTaskAnswer', 'A task', TASK) },
      },
      errors: TASK_ERRORS,
    },
    events: {
      operationId: `watch${name}`,
      tag: 'video',
      summary: `The changes of one ${kind} task as they happen`,
      description: 'An event stream that ends with the task.',
      parameters: [TASK_ID],
      answer: {
        description: '`event: task` with the task object as data at each change, up to the last one',
        content: { 'text/event-stream': eventsOf(TASK) },
      },
      errors: TASK_ERRORS,
    },
  }) as const satisfies Readonly<Record<string, RouteDocumentation>>

export const TEXT_DOCUMENTATION = videoDocumentation({
  name: 'TextVideo',
  kind: 'text-to-video',
  from: 'a text',
  request: schemaOf(TextVideoDto, 'TextVideoRequest', 'A video to be made from a text'),
})

export const MULTI_IMAGE_DOCUMENTATION = videoDocumentation({
  name: 'MultiImageVideo',
  kind: 'multi-image',
  from: 'several reference images',
  request: schemaOf(MultiImageVideoDto, 'MultiImageVideoRequest', 'A video to be made from images'),
})
