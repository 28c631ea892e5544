import { schemaOf } from '../core/dto.js'
import type { RouteDocumentation } from '../core/endpoint.js'
import { TEXT } from '../core/json-schema.js'
import { InputAudioAppendDto, ResponseCreateDto, SessionUpdateDto } from './realtime.dto.js'

/** Those whose fields are checked; asyncapi.yaml has all. */
const CLIENT_EVENTS = {
  SessionUpdate: schemaOf(SessionUpdateDto, 'SessionUpdate', 'Configures the session'),
  InputAudioAppend: schemaOf(InputAudioAppendDto, 'InputAudioAppend', 'Sends audio'),
  ResponseCreate: schemaOf(ResponseCreateDto, 'ResponseCreate', 'Requests a response'),
}

export const REALTIME_DOCUMENTATION: RouteDocumentation = {
  operationId: 'openRealtimeSession',
  tag: 'realtime',
  summary: 'Realtime voice conversation or transcription: a WebSocket',
  description: 'Browsers, which cannot set headers here, offer the key as subprotocol openai-insecure-api-key.<KEY>.',
  parameters: [
    {
      in: 'query',
      name: 'model',
      description: 'Required unless intent is transcription; then of the class realtime or one of stt-*',
      schema: { ...TEXT, minLength: 1, example: 'gpt-realtime' },
    },
    {
      in: 'query',
      name: 'intent',
      description: 'transcription opens a session that only writes down what the client says; others travel on',
      schema: { ...TEXT, example: 'transcription' },
    },
    {
      in: 'header',
      name: 'Upgrade',
      required: true,
      description: 'As every WebSocket client sends it',
      schema: { ...TEXT, enum: ['websocket'] },
    },
    {
      in: 'header',
      name: 'Sec-WebSocket-Version',
      required: true,
      description: 'As every WebSocket client sends it',
      schema: { ...TEXT, enum: ['13'] },
    },
    {
      in: 'header',
      name: 'Sec-WebSocket-Protocol',
      description: 'Protocols the client offers; realtime is taken',
      schema: { ...TEXT, example: 'realtime' },
    },
  ],
  answer: { status: 101, description: 'The upstream has answered, and the socket speaks events from here on' },
  errors: ['upgrade_required', 'forbidden_origin'],
  extensions: { 'x-client-events': CLIENT_EVENTS },
}
