/** What a route is about, for figures that need not tell each route. */
export type TrafficFamily =
  | 'chat'
  | 'messages'
  | 'speech'
  | 'transcription'
  | 'translation'
  | 'realtime'
  | 'video'
  | 'image'
  | 'document'
  | 'other'

const PREFIXES: readonly (readonly [prefix: string, family: TrafficFamily])[] = [
  ['/v1/chat/', 'chat'],
  ['/v1/messages', 'messages'],
  ['/v1/audio/speech', 'speech'],
  ['/v1/audio/transcriptions', 'transcription'],
  ['/v1/audio/translations', 'translation'],
  ['/v1/realtime', 'realtime'],
  ['/vidgen/', 'video'],
  ['/imggen/', 'image'],
  ['/v1/document/', 'document'],
]

export const TRAFFIC_FAMILIES: readonly TrafficFamily[] = [...PREFIXES.map(([, family]) => family), 'other']

/** The family of a route's template. */
export const familyOf = (template: string): TrafficFamily =>
  PREFIXES.find(([prefix]) => template.startsWith(prefix))?.[1] ?? 'other'
