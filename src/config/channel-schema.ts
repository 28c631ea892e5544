import * as z from 'zod'
import { isMap } from './faults.js'
import { MODEL_CLASS_NAMES, WRITING_DIALECTS } from './model-classes.js'
import {
  address,
  boolean,
  bothValid,
  day,
  type DeepReadonly,
  distinct,
  durationMs,
  globs,
  identifier,
  integer,
  isNonEmpty,
  mapOf,
  modelName,
  oneOf,
  positiveNumber,
  settings,
  strictMap,
  textAs,
  withoutEmpty,
} from './value-types.js'

const timeoutOverrides = settings({
  connectMs: durationMs.exactOptional().describe('Instead of `timeouts.connectMs`'),
  firstByteMs: durationMs.exactOptional().describe('Instead of `timeouts.firstByteMs`'),
  idleMs: durationMs.exactOptional().describe('Instead of `timeouts.idleMs`'),
  totalMs: durationMs.exactOptional().describe('Instead of `timeouts.totalMs`'),
})

/** Four separate deadlines of one upstream call, all in milliseconds. */
export type UpstreamTimeouts = Required<DeepReadonly<z.output<typeof timeoutOverrides>>>

/** A channel authenticates with a secret of its own, or passes on the caller's bearer. */
export type ChannelCredentials = { readonly kind: 'own'; readonly secret: string } | { readonly kind: 'caller' }

/** What one provider's manifest declares about the configuration of its channels. */
export interface ProviderSettings {
  /** Name of the provider in channels and models. */
  readonly name: string
  readonly credentialsSchema: z.ZodType<ChannelCredentials>
  readonly optionsSchema: z.ZodType<Readonly<Record<string, unknown>>>
  /** Replace the gateway's default timeouts where the upstream's own client uses others. */
  readonly timeouts?: Partial<UpstreamTimeouts>
}

/** For providers without options of their own. */
export const noOptions = settings({})

/** Credentials travel in headers: printable ASCII, no spaces. */
const PRINTABLE = /^[\x21-\x7e]{1,4096}$/
const PRINTABLE_RULE = 'must be 1 to 4096 printable ASCII characters without spaces, or "caller"'

function readCredentials(text: string): ChannelCredentials | undefined {
  if (text === 'caller') return { kind: 'caller' }
  return PRINTABLE.test(text) ? { kind: 'own', secret: text } : undefined
}

/** One printable secret, or the caller's own. */
export const keyCredentials = textAs(PRINTABLE_RULE, readCredentials)

/** A pair `A|B`; one key without `|`, too, where `allowed` says so. */
export const pairCredentials = (allowed: 'pair' | 'pair or key', rule: string) =>
  textAs(rule, (text) => {
    const parts = text.split('|')
    const isKey = parts.length === 1 && (allowed === 'pair or key' || text === 'caller')
    return isKey || (parts.length === 2 && !parts.includes('')) ? readCredentials(text) : undefined
  })

/** Standard voices by the upstream's names for them. */
export const voices = mapOf(z.string().regex(/^[^\p{Cc}]{1,256}$/u, 'must be a voice of 1 to 256 printable characters'))
  .meta({ type: 'map of voices' })
  .describe("p2 and p3: standard voice → the upstream's voice")

/** A path between the base address and the provider's own path; the trailing slash is dropped. */
export const pathPrefix = textAs(
  'must be a path that starts with / and holds no query, fragment, space or ..',
  (text) =>
    /^\/[A-Za-z0-9._~%/-]*$/.test(text) && !text.split('/').includes('..') ? text.replace(/\/+$/, '') : undefined,
)
  .meta({ type: 'path' })
  .describe("vidgen and imggen: replaces the provider's own first path segment, `/v1` or `/mj`")

/** Discriminator of the channel variants; cannot occur as a key in a file. */
const VARIANT = '\0variant'
/** Variant for an unknown provider, whose credentials and options are not checked. */
const UNKNOWN_PROVIDER = '\0unknown'

/** Fields of channels of all providers. */
const COMMON = {
  id: identifier.describe('Shown in logs'),
  baseUrl: address('http', 'https', 'ws', 'wss').describe(
    'May carry a path, to which the provider appends its own (`/v1/…`). No user, query or fragment',
  ),
  models: globs
    .exactOptional()
    .describe('Models served; absent = all catalogue models of the provider. See [models](#models)'),
  modelMap: mapOf(modelName).meta({ type: 'map of names' }).prefault({}).describe("Model → the upstream's name of it"),
  priority: integer({ min: 0 }).default(0).describe('Lower is tried first'),
  weight: positiveNumber.default(1).describe('Relative share of requests within one priority'),
  translate: oneOf(['never', 'only_these', 'always'])
    .exactOptional()
    .describe(
      'Instead of `dialects.translate` for this channel; `only_these` = models with `dialects` in their row. See [dialects.md](dialects.md)',
    ),
  timeouts: timeoutOverrides.prefault({}).describe('Overrides of `timeouts` for this channel; see [above](#timeouts)'),
}

/** A channel with the credentials and options of its provider. `timeouts` are completed afterwards (`channelTimeouts`). */
const channelVariant = (
  variant: string,
  provider: z.ZodType<string>,
  { credentialsSchema, optionsSchema }: Pick<ProviderSettings, 'credentialsSchema' | 'optionsSchema'>,
) =>
  strictMap(
    {
      [VARIANT]: z.literal(variant).meta({ hidden: true }),
      id: COMMON.id,
      provider,
      baseUrl: COMMON.baseUrl,
      credentials: credentialsSchema.meta({
        type: '1–4096 printable ASCII, or `caller`',
        secret: true,
        description:
          "The upstream's key; see [below](#credentials-caller). p2: always `APP_ID|ACCESS_TOKEN`; vidgen: `AK|SK` or a bearer",
      }),
      models: COMMON.models,
      modelMap: COMMON.modelMap,
      priority: COMMON.priority,
      weight: COMMON.weight,
      translate: COMMON.translate,
      options: optionsSchema.prefault({}).meta({ type: 'map', description: 'By provider; p4 and m1 have none' }),
      timeouts: COMMON.timeouts,
    },
    VARIANT,
  )

/** A name among those of the providers. */
const providerName = (providers: readonly ProviderSettings[]) => oneOf(providers.map(({ name }) => name))

/** A channel of one of `providers`. With an unknown provider the other settings are still checked. */
function channelSchema(providers: readonly ProviderSettings[]) {
  const provider = providerName(providers).describe('The upstream')
  const unchecked = {
    credentialsSchema: z.custom<ChannelCredentials>(),
    optionsSchema: z.custom<Readonly<Record<string, unknown>>>(),
  }
  const unknown = channelVariant(UNKNOWN_PROVIDER, provider, unchecked)
  const known = new Map(providers.map((entry) => [entry.name, channelVariant(entry.name, provider, entry)]))
  const chosen = (value: unknown): unknown => {
    const channel = withoutEmpty(value, Object.keys(unknown.shape))
    if (!isMap(channel)) return channel
    const { provider: name } = channel
    return { ...channel, [VARIANT]: typeof name === 'string' && known.has(name) ? name : UNKNOWN_PROVIDER }
  }
  return z
    .preprocess(chosen, z.discriminatedUnion(VARIANT, [unknown, ...known.values()]))
    .transform(({ [VARIANT]: _variant, ...channel }) => channel)
}

export const channels = (providers: readonly ProviderSettings[]) =>
  distinct(channelSchema(providers), 'id')
    .meta({ type: 'list' })
    .default([])
    .describe('The upstreams. No two may share an id')

type ChannelEntry = DeepReadonly<z.output<ReturnType<typeof channelSchema>>>

/** `timeouts` is complete: the gateway's, the provider's and this channel's, merged. */
export interface ChannelConfig extends Omit<ChannelEntry, 'timeouts'> {
  readonly timeouts: UpstreamTimeouts
}

/** What the translation to the dialect of a model's upstream depends on; absent = the built-in catalogue's, or the default. */
const modelFacts = settings({
  thinking: oneOf(['none', 'budget', 'adaptive'])
    .exactOptional()
    .describe(
      'How it is asked to think: not at all, by a budget of tokens, or by an effort. Default by a `reasons` that differs from the catalogue’s, else the catalogue’s, else `adaptive` with `reasons` and `none` without',
    ),
  efforts: z
    .array(oneOf(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']))
    .refine(isNonEmpty, 'must name at least one effort')
    .meta({ type: 'list of efforts' })
    .exactOptional()
    .describe('Which efforts it takes: another one becomes the nearest. Absent = all that its dialect has'),
  thinkingWithTools: boolean
    .exactOptional()
    .describe(
      'Whether a chat upstream lets it think where there are tools; false = it is asked not to then. Default true',
    ),
  thinkingOff: oneOf(['disabled', 'between_tools', 'never'])
    .exactOptional()
    .describe('How a messages upstream is asked not to think; `never` = it cannot be. Default `disabled`'),
  forcedToolChoice: boolean.exactOptional().describe('Whether it can be made to call a tool. Default true'),
  sampling: boolean.exactOptional().describe('Whether it takes temperature, top_p and top_k. Default true'),
  maxTokensField: oneOf(['max_completion_tokens', 'max_tokens'])
    .exactOptional()
    .describe('In which field a chat upstream takes the maximum. Default `max_completion_tokens`'),
  systemRole: oneOf(['system', 'developer', 'none'])
    .exactOptional()
    .describe(
      'The role of instructions within a conversation; `none` = only before it, in chat as `system`. Default `none`',
    ),
  maxOutputTokens: integer({ min: 1, max: 10_000_000 })
    .exactOptional()
    .describe("Sent where the client's dialect needs no maximum and the upstream's does. Default 8192"),
  vision: boolean.exactOptional().describe('Whether it takes pictures. Default true'),
  files: boolean.exactOptional().describe('Whether it takes files. Default true'),
  reasoningField: oneOf(['reasoning_content', 'reasoning'])
    .exactOptional()
    .describe('In which a chat upstream wants back what it thought in this turn; absent = in none'),
  promptCacheBreakpoints: boolean
    .exactOptional()
    .describe('Whether a chat upstream takes `prompt_cache_breakpoint`. Default false'),
})

export type ModelFactsSection = DeepReadonly<z.output<typeof modelFacts>>

const modelRow = (providers: readonly ProviderSettings[]) =>
  settings({
    id: modelName.describe("The model's whole name, without `*`"),
    class: oneOf(MODEL_CLASS_NAMES).describe('Which endpoints serve it'),
    providers: z
      .array(providerName(providers))
      .refine(isNonEmpty, 'must name at least one provider')
      .meta({ type: 'list of providers' })
      .describe('Whose channels may serve it'),
    reasons: boolean
      .exactOptional()
      .describe(
        'Whether it thinks without showing it; absent = as the catalogue says, else learned. See [limits](limits.md#client-disconnects)',
      ),
    dialects: z
      .array(oneOf(WRITING_DIALECTS))
      .refine(isNonEmpty, 'must name at least one dialect')
      .meta({ type: 'list of dialects' })
      .exactOptional()
      .describe(
        'What its upstream speaks itself, of `chat`, `messages` and `responses`; absent = by class. The others are translated. See [dialects.md](dialects.md)',
      ),
    facts: modelFacts
      .exactOptional()
      .describe(
        'What translations to its dialect depend on. Each fact is by default as the catalogue says, else as said below',
      ),
    createdAt: day
      .exactOptional()
      .describe('The day on which it was published, for `GET /v1/models`; absent = not known'),
  })

export type ModelRow = DeepReadonly<z.output<ReturnType<typeof modelRow>>>

/** Rows added to the built-in catalogue. */
export const models = (providers: readonly ProviderSettings[]) =>
  distinct(modelRow(providers), 'id').meta({ type: 'list' }).default([]).describe('No two may share an id')

/** When a channel is skipped. */
export const breaker = settings({
  failures: integer({ min: 1, max: 1000 })
    .default(3)
    .describe('Consecutive failures by its own fault after which a channel is skipped'),
  coolDownMs: durationMs
    .default(5000)
    .describe('First cool-down, doubled each further time; afterwards one request tests the channel'),
  maximumCoolDownMs: durationMs.default(300_000).describe('Upper limit of the cool-down'),
}).refine(({ coolDownMs, maximumCoolDownMs }) => coolDownMs <= maximumCoolDownMs, {
  path: ['coolDownMs'],
  error: 'must not be greater than breaker.maximumCoolDownMs',
  when: bothValid('coolDownMs', 'maximumCoolDownMs'),
})

export type BreakerSection = DeepReadonly<z.output<typeof breaker>>

/**
 * The timeouts of a channel, in rising precedence: built-in defaults, the provider's, what the file sets for all
 * channels, what it sets for this one (`own`). `section` is the checked section `timeouts`, complete with the built-in defaults;
 * `document` is the raw file, which alone knows what was set.
 */
export function channelTimeouts(
  provider: ProviderSettings | undefined,
  own: Partial<UpstreamTimeouts>,
  section: UpstreamTimeouts,
  document: unknown,
): UpstreamTimeouts {
  const raw = isMap(document) ? document['timeouts'] : undefined
  const isSet = (name: keyof UpstreamTimeouts): boolean => isMap(raw) && raw[name] !== undefined && raw[name] !== null
  const fallback = provider?.timeouts ?? {}
  const timeout = (name: keyof UpstreamTimeouts): number =>
    own[name] ?? (isSet(name) ? section[name] : (fallback[name] ?? section[name]))
  return {
    connectMs: timeout('connectMs'),
    firstByteMs: timeout('firstByteMs'),
    idleMs: timeout('idleMs'),
    totalMs: timeout('totalMs'),
  }
}
