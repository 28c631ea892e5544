/**
 * What a model of each class can be asked for (specification: TTS identifiers, STT model classes, chat models). A line here is
 * a class that the configuration accepts and a capability that routing knows.
 */
export const MODEL_CLASSES = {
  tts: ['speech'],
  'tts-style': ['speech'],
  'stt-standard': ['transcription', 'translation', 'realtime_transcription'],
  'stt-generation': ['transcription', 'realtime_transcription'],
  'stt-diarize': ['transcription', 'realtime_transcription'],
  'stt-realtime': ['realtime_transcription'],
  chat: ['chat', 'responses'],
  'chat-audio': ['chat'],
  // Served on the Responses API only.
  responses: ['responses'],
  messages: ['messages'],
  embedding: ['embeddings'],
  // Stands in the query of a transcription session, in which another model transcribes.
  realtime: ['realtime', 'realtime_transcription'],
  video: ['video'],
  image: ['image'],
} as const

export type ModelClass = keyof typeof MODEL_CLASSES

/** Capabilities that an endpoint may require of a model. */
export type ModelCapability = (typeof MODEL_CLASSES)[ModelClass][number]

export const MODEL_CLASS_NAMES = Object.keys(MODEL_CLASSES) as readonly ModelClass[]

/** Whether models of a class can be asked for this. */
export function classServes(modelClass: ModelClass, capability: string): boolean {
  const capabilities: readonly string[] = MODEL_CLASSES[modelClass]
  return capabilities.includes(capability)
}

/** The dialects of models that write: each is the capability of its name. */
export const WRITING_DIALECTS = ['chat', 'messages', 'responses'] as const
export type WritingDialect = (typeof WRITING_DIALECTS)[number]

export const isWritingDialect = (capability: string): capability is WritingDialect =>
  (WRITING_DIALECTS as readonly string[]).includes(capability)

export const classWrites = (modelClass: ModelClass): boolean => MODEL_CLASSES[modelClass].some(isWritingDialect)

/**
 * The specification's table of STT classes: class → response_format allowed. A test compares it with docs/spec.md.
 * `stt-diarize` is a class G model that also speaks `diarized_json`.
 */
export const CLASS_FORMATS = {
  'stt-standard': ['json', 'text', 'srt', 'verbose_json', 'vtt'],
  'stt-generation': ['json', 'text'],
  'stt-diarize': ['json', 'text', 'diarized_json'],
} as const satisfies Partial<Record<ModelClass, readonly string[]>>
