/** System voices of the account that the simulator stands for. */
const NAMED_VOICES = ['English_expressive_narrator', 'audiobook_male_1', 'Calm_Woman', 'Wise_Woman']

/** Voices that exist in a `-jingpin` variant too. */
const PLAIN_VOICES = [
  'male-qn-jingying',
  'male-qn-qingse',
  'male-qn-badao',
  'male-qn-daxuesheng',
  'female-tianmei',
  'female-shaonv',
  'female-yujie',
  'female-chengshu',
]

export const SYSTEM_VOICES: readonly string[] = [
  ...NAMED_VOICES,
  ...PLAIN_VOICES,
  ...PLAIN_VOICES.map((voice) => `${voice}-jingpin`),
]

/** Models that know every emotion. */
export const NEWER_MODELS: readonly string[] = [
  'speech-2.6-hd',
  'speech-2.6-turbo',
  'speech-2.8-hd',
  'speech-2.8-turbo',
]

export const SPEECH_MODELS: readonly string[] = [
  'speech-2.5-hd-preview',
  'speech-2.5-turbo-preview',
  'speech-02-hd',
  'speech-02-turbo',
  'speech-01-hd',
  'speech-01-turbo',
  ...NEWER_MODELS,
]
