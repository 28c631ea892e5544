import { Global, Module } from '@nestjs/common'
import { LIMITS, USAGE, USAGE_RECORDS } from '../account/account.endpoints.js'
import { SPEECH, TRANSCRIPTIONS, TRANSLATIONS } from '../audio/audio.endpoints.js'
import { CHAT_COMPLETIONS } from '../chat/chat.endpoint.js'
import { EndpointTable } from '../core/endpoint.js'
import { DOCUMENT_PARSE } from '../document/document.endpoint.js'
import { IMAGE_EVENTS, IMAGE_FETCH, IMAGE_SEED } from '../image/image.endpoints.js'
import { COUNT_TOKENS, MESSAGES } from '../messages/messages.endpoint.js'
import { MODEL, MODELS } from '../models/models.endpoints.js'
import { REALTIME } from '../realtime/realtime.endpoint.js'
import {
  MULTI_IMAGE_CALLBACKS,
  REDELIVER_CALLBACK,
  TEXT_CALLBACKS,
  UPSTREAM_CALLBACK,
} from '../tasks/task.endpoints.js'
import {
  MULTI_IMAGE_CREATE,
  MULTI_IMAGE_EVENTS,
  MULTI_IMAGE_FIND,
  MULTI_IMAGE_LIST,
  TEXT_CREATE,
  TEXT_EVENTS,
  TEXT_FIND,
  TEXT_LIST,
} from '../video/video.endpoints.js'

/** Every endpoint of the gateway. Metric families are shown in this order. */
export const ENDPOINTS = new EndpointTable([
  CHAT_COMPLETIONS,
  MESSAGES,
  COUNT_TOKENS,
  SPEECH,
  TRANSCRIPTIONS,
  TRANSLATIONS,
  REALTIME,
  MULTI_IMAGE_CREATE,
  MULTI_IMAGE_LIST,
  MULTI_IMAGE_FIND,
  MULTI_IMAGE_EVENTS,
  MULTI_IMAGE_CALLBACKS,
  TEXT_CREATE,
  TEXT_LIST,
  TEXT_FIND,
  TEXT_EVENTS,
  TEXT_CALLBACKS,
  REDELIVER_CALLBACK,
  UPSTREAM_CALLBACK,
  IMAGE_FETCH,
  IMAGE_SEED,
  IMAGE_EVENTS,
  DOCUMENT_PARSE,
  MODELS,
  MODEL,
  LIMITS,
  USAGE,
  USAGE_RECORDS,
])

/** Gives the table to those who count by endpoint. */
@Global()
@Module({ providers: [{ provide: EndpointTable, useValue: ENDPOINTS }], exports: [EndpointTable] })
export class EndpointsModule {}
