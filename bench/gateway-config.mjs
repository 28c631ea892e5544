import { stringify } from 'yaml'
import { CALLER_KEY, MODELS, UPSTREAM_KEY } from './wire.mjs'

const P1_MODELS = Object.values(MODELS).filter((model) => model !== MODELS.messages)

const numbered = (count, name) => Array.from({ length: count }, (_, index) => name(index))

/** Of one key among many; long enough to be one. */
export const furtherKey = (index) => `${CALLER_KEY}-${index}`
/** All of one length, so that answers have one, too. */
export const furtherModel = (index) => `${MODELS.chat}-${String(index).padStart(4, '0')}`

/**
 * The YAML the measured gateway runs on: one key, a p1 and an m1 channel to the upstream, one model of each class used. With
 * `tasks` a vidgen channel as well, for which the gateway opens its store; with `translate` every model in every dialect. `keys` and
 * `models`: so many more, each model on a channel of its own; `limits`: of the key; `sections`: further ones, as they are in the file.
 */
export function gatewayConfig(
  upstreamUrl,
  { tasks = false, translate = false, keys = 0, models = 0, limits, sections = {} } = {},
) {
  const upstream = { baseUrl: upstreamUrl, credentials: UPSTREAM_KEY }
  return stringify({
    server: { metricsPort: 0 },
    auth: {
      keys: [
        { id: 'bench', key: CALLER_KEY, ...(limits && { limits }) },
        ...numbered(keys, (index) => ({ id: `bench-${index}`, key: furtherKey(index) })),
      ],
    },
    ...(translate ? { dialects: { translate: 'on' } } : {}),
    channels: [
      { id: 'bench-upstream', provider: 'p1', ...upstream, models: P1_MODELS },
      { id: 'bench-messages', provider: 'm1', ...upstream, models: [MODELS.messages] },
      ...(tasks ? [{ id: 'bench-video', provider: 'vidgen', ...upstream }] : []),
      ...numbered(models, (index) => ({
        id: `bench-${index}`,
        provider: 'p1',
        ...upstream,
        models: [furtherModel(index)],
      })),
    ],
    models: [
      { id: MODELS.chat, class: 'chat', providers: ['p1'], ...(translate ? { dialects: ['chat'] } : {}) },
      { id: MODELS.messages, class: 'messages', providers: ['m1'] },
      { id: MODELS.speech, class: 'tts', providers: ['p1'] },
      { id: MODELS.transcription, class: 'stt-standard', providers: ['p1'] },
      { id: MODELS.realtime, class: 'realtime', providers: ['p1'] },
      ...numbered(models, (index) => ({ id: furtherModel(index), class: 'chat', providers: ['p1'] })),
    ],
    ...sections,
  })
}
