import { createReadStream } from 'node:fs'
import { resolve } from 'node:path'
import { type Document, isScalar, LineCounter, parseDocument, type Scalar, visit, type YAMLError } from 'yaml'
import { type AuthSection, ISSUED_PREFIX } from './auth-schema.js'
import { channelTimeouts, type ProviderSettings } from './channel-schema.js'
import { type EnvironmentOverride, readEnvironment, readVariable, type Variables } from './environment.js'
import { checked, ConfigError, deepFreeze, FAULTED, FaultList, fieldPath, isMap, itemPath } from './faults.js'
import { type ConfigDocument, configSchema, type GatewayConfig } from './settings.js'

/** Aliases may repeat a block for hundreds of channels, but not multiply without end. */
const MAX_VALUES = 200_000
/** The contract is five levels deep; an alias inside its own anchor would never end. */
const MAX_DEPTH = 32

/** In this order: the escape `$${`, a well-formed placeholder, any other `${`. */
const PLACEHOLDER = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\}|\$\{/g

interface Walk {
  readonly env: Variables
  readonly faults: FaultList
  visited: number
}

/**
 * Returns a copy of a parsed document in which `${NAME}` and `${NAME:-default}` inside strings are replaced, by the
 * variable or the file that `NAME_FILE` names. It works on values, not on the file's text, so a secret may hold any
 * character. Keys are left alone, and what was put in is not
 * looked at again. `$${` stands for `${`. A string that comes out empty counts as not given (null).
 */
export function interpolate(document: unknown, env: Variables, faults: FaultList): unknown {
  return walk(document, '', 0, { env, faults, visited: 0 })
}

function walk(value: unknown, path: string, depth: number, state: Walk): unknown {
  state.visited += 1
  if (state.visited === MAX_VALUES) state.faults.add('document', `must not hold more than ${MAX_VALUES} values`)
  if (state.visited >= MAX_VALUES) return FAULTED
  if (depth > MAX_DEPTH) return fault(path, `must not be nested deeper than ${MAX_DEPTH} levels`, state)
  if (typeof value === 'string') return replace(value, path, state)
  if (Array.isArray(value)) return value.map((item, index) => walk(item, itemPath(path, index), depth + 1, state))
  if (!isMap(value)) return value
  const entries = Object.entries(value).map(([name, item]): [string, unknown] => [
    name,
    walk(item, fieldPath(path, name), depth + 1, state),
  ])
  return Object.fromEntries(entries)
}

function replace(text: string, path: string, state: Walk): unknown {
  if (!text.includes('${')) return text
  const problems: string[] = []
  const replaced = text.replace(PLACEHOLDER, (match: string, name?: string, fallback?: string) => {
    if (match === '$${') return '${'
    if (name === undefined) {
      problems.push('holds a malformed placeholder; write ${NAME} or ${NAME:-default}, and $${ for a literal ${')
      return ''
    }
    const { value = fallback, problem } = readVariable(state.env, name)
    if (problem !== undefined) problems.push(problem)
    else if (value === undefined) problems.push(`the environment variable ${name} is not set`)
    return value ?? ''
  })
  for (const problem of problems) state.faults.add(path, problem)
  if (problems.length > 0) return FAULTED
  return replaced === '' ? null : replaced
}

function fault(path: string, message: string, state: Walk): typeof FAULTED {
  state.faults.add(path, message)
  return FAULTED
}

/**
 * Ids of keys without `ISSUED_PREFIX`, if a channel passes callers' keys on. The beginning of a key given as a hash is
 * unknown. `document` is the raw file, as the checked one has only hashes.
 */
function mistakableKeys(
  { auth, channels }: Pick<ConfigDocument, 'auth' | 'channels'>,
  document: unknown,
): Pick<AuthSection, 'mistakableKeys'> {
  if (!channels.some(({ credentials }) => credentials.kind === 'caller')) return {}
  const rawAuth = isMap(document) ? document['auth'] : undefined
  const rawKeys = isMap(rawAuth) ? rawAuth['keys'] : undefined
  if (!Array.isArray(rawKeys)) return {}
  const begins = (raw: unknown): boolean => isMap(raw) && String(raw['key']).startsWith(ISSUED_PREFIX)
  const ids = auth.keys.filter((_key, index) => !begins(rawKeys[index])).map(({ id }) => id)
  return ids.length === 0 ? {} : { mistakableKeys: ids }
}

/** One anchor may be used by every one of a few hundred channels; products of nested aliases stay below this as well. */
const MAX_ALIASES = 1000

/** Texts for the parser's codes: its own messages quote the file, which holds secrets. */
const SYNTAX_MESSAGES: Partial<Record<YAMLError['code'], string>> = {
  BAD_ALIAS: 'malformed anchor or alias',
  BAD_DIRECTIVE: 'malformed or unknown directive',
  BAD_DQ_ESCAPE: 'unknown escape sequence in a double-quoted string',
  BAD_INDENT: 'wrong indentation',
  BLOCK_AS_IMPLICIT_KEY: 'a value that holds ": " must be put in quotes, and a nested map starts on its own line',
  DUPLICATE_KEY: 'the same key stands twice in one map',
  MISSING_CHAR: 'a quote, colon, comma or closing bracket is missing',
  MULTIPLE_DOCS: 'the file must hold one document',
  NON_STRING_KEY: 'a key must be a plain word',
  TAB_AS_INDENT: 'tabs must not be used for indentation',
  TAG_RESOLVE_FAILED: 'tags are not supported',
}
const PLACEHOLDER_HINT = '; inside { } or [ ] a ${NAME} must be put in quotes'

/**
 * Parses YAML 1.2 text to plain values. Adds a fault with line and column for everything that is not sound YAML, and
 * returns undefined when the text is too broken to look further.
 */
function readYaml(text: string, faults: FaultList): unknown {
  try {
    return readDocument(text, faults)
  } catch (error) {
    // The parser recurses: brackets nested by the thousand exhaust the stack instead of giving an error.
    if (!(error instanceof RangeError)) throw error
    faults.add('document', 'is nested too deeply')
    return undefined
  }
}

function readDocument(text: string, faults: FaultList): unknown {
  const lineCounter = new LineCounter()
  const document = parseDocument(text, {
    lineCounter,
    prettyErrors: false,
    // With 'silent' the parser takes the first of several documents and says nothing.
    logLevel: 'error',
    stringKeys: true,
    // The parser's own check compares every key with every other: a long map would hold up a reload for seconds.
    uniqueKeys: false,
    resolveKnownTags: false,
  })
  const problems = [...document.errors, ...document.warnings].map(({ code, pos }) => ({ code, offset: pos[0] }))
  reportSyntax([...problems, ...duplicateKeys(document)], text.split('\n'), lineCounter, faults)
  const readable = problems.every(({ code }) => code === 'TAG_RESOLVE_FAILED')
  return readable ? toPlainValue(document, faults) : undefined
}

interface Problem {
  readonly code: YAMLError['code']
  readonly offset: number
}

function duplicateKeys(document: Document.Parsed): Problem[] {
  const duplicates: Problem[] = []
  visit(document, {
    Map(_key, { items }) {
      const seen = new Set<unknown>()
      for (const { key } of items.filter((pair) => isScalar(pair.key))) {
        const { value, range } = key as Scalar
        if (seen.has(value)) duplicates.push({ code: 'DUPLICATE_KEY', offset: range?.[0] ?? 0 })
        seen.add(value)
      }
    },
  })
  return duplicates
}

/** One fault per line: a single slip makes the parser stumble over everything behind it. */
function reportSyntax(problems: Problem[], lines: string[], lineCounter: LineCounter, faults: FaultList): void {
  const reported = new Set<number>()
  for (const { code, offset } of problems) {
    const { line, col } = lineCounter.linePos(offset)
    if (reported.has(line)) continue
    reported.add(line)
    const isPlaceholder =
      hasPlaceholderInBrackets(lines[line - 1] ?? '') && /^(?:MISSING_CHAR|UNEXPECTED_TOKEN)$/.test(code)
    const message = SYNTAX_MESSAGES[code] ?? 'not valid YAML'
    faults.add(`line ${line}, column ${col}`, isPlaceholder ? message + PLACEHOLDER_HINT : message)
  }
}

function hasPlaceholderInBrackets(line: string): boolean {
  const bracket = line.search(/[[{,]/)
  return bracket >= 0 && line.lastIndexOf('${') > bracket
}

function toPlainValue(document: Document.Parsed, faults: FaultList): unknown {
  try {
    return document.toJS({ maxAliasCount: MAX_ALIASES })
  } catch (error) {
    // An alias without its anchor, or an expansion beyond the limit; anything else is a defect of ours.
    if (!(error instanceof ReferenceError)) throw error
    faults.add(
      'document',
      `every alias needs an anchor before it, and no anchor may be used more than ${MAX_ALIASES} times`,
    )
    return undefined
  }
}

const MAX_FILE_BYTES = 1_048_576

export interface LoadedConfig {
  readonly config: GatewayConfig
  /** Absolute path of the file it came from. */
  readonly file: string
}

/**
 * Reads and checks the file at `path`, at most 1 MiB. Undefined when there is no such file (the caller's sandbox mode),
 * but in production a missing file that GATEWAY_CONFIG names is a fault. Throws `ConfigError` with every fault.
 */
export async function loadConfigFile(
  path: string,
  env: Variables,
  providers: readonly ProviderSettings[],
): Promise<LoadedConfig | undefined> {
  const file = resolve(path)
  const text = await readConfigText(file, env)
  return text === undefined ? undefined : { config: parseConfig(text, env, providers), file }
}

async function readConfigText(file: string, env: Variables): Promise<string | undefined> {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(await readAtMost(file))
  } catch (error) {
    if (error instanceof ConfigError) throw error
    const { production, configFileNamed } = readEnvironment(env)
    const code = isMap(error) && typeof error['code'] === 'string' ? error['code'] : 'unknown'
    if (code === 'ENOENT' && !(production && configFileNamed)) return undefined
    if (code === 'ENOENT') throw fileFault('the file that GATEWAY_CONFIG names does not exist')
    throw fileFault(code === 'ERR_ENCODING_INVALID_ENCODED_DATA' ? 'must be UTF-8 text' : `cannot be read (${code})`)
  }
}

async function readAtMost(file: string): Promise<Buffer> {
  const chunks: Buffer[] = []
  // `end` is inclusive: one byte more than allowed is enough to know.
  for await (const chunk of createReadStream(file, { end: MAX_FILE_BYTES })) chunks.push(chunk as Buffer)
  const content = Buffer.concat(chunks)
  if (content.length > MAX_FILE_BYTES) throw fileFault(`must not be larger than ${MAX_FILE_BYTES} bytes`)
  return content
}

/** The path itself is an environment value, and none of those is printed. */
function fileFault(message: string): ConfigError {
  return new ConfigError([{ path: 'configuration file', message }])
}

/**
 * The complete, frozen configuration that `yamlText` and the environment give together; `providers` are those that channels may
 * name. Pure. Throws `ConfigError` with every fault of both.
 */
export function parseConfig(yamlText: string, env: Variables, providers: readonly ProviderSettings[]): GatewayConfig {
  const { overrides, production, inContainer } = readEnvironment(env)
  const faults = new FaultList(new Map(overrides.map((o) => [`${o.section}.${o.setting}`, o.variable])))
  const raw = readYaml(yamlText, faults)
  if (raw === undefined || raw === null) {
    if (raw === null) faults.add('document', 'must be a map; write {} for the defaults')
    faults.throwIfAny()
  }
  for (const { section, setting, problem } of overrides)
    if (problem !== undefined) faults.add(`${section}.${setting}`, problem)
  // The overrides go in last: they are not interpolated, and a placeholder that they replace need not be set.
  const document = interpolate(withoutOverridden(raw, overrides), env, faults)
  const defaults = inContainer ? CONTAINER_DEFAULTS.filter((one) => isAbsent(document, one)) : []
  const values = withOverrides(withOverrides(document, defaults), overrides)
  const settings = checked(configSchema(providers, production), values, faults)
  faults.throwIfAny()
  if (settings === undefined) throw new Error('a configuration was refused without a fault')
  return deepFreeze(complete(settings, document, providers))
}

function withoutOverridden(document: unknown, overrides: readonly EnvironmentOverride[]): unknown {
  return withOverrides(
    document,
    overrides.map((override) => ({ ...override, value: null })),
  )
}

type Override = Pick<EnvironmentOverride, 'section' | 'setting'> & { readonly value?: string | null }

/** Of what the file leaves open. */
const CONTAINER_DEFAULTS: readonly Override[] = [
  { section: 'observability', setting: 'metricsHost', value: '0.0.0.0' },
  { section: 'server', setting: 'docs', value: 'public' },
]

function isAbsent(document: unknown, { section, setting }: Override): boolean {
  const settings = isMap(document) ? (document[section] ?? {}) : undefined
  return isMap(settings) && (settings[setting] ?? undefined) === undefined
}

/** Applies the overrides to the document; a section that is not a map is left unchanged and reported as a fault. */
function withOverrides(document: unknown, overrides: readonly Override[]): unknown {
  return overrides.reduce((current, { section, setting, value = FAULTED }) => {
    if (!isMap(current)) return current
    const settings = current[section] ?? {}
    return isMap(settings) ? { ...current, [section]: { ...settings, [setting]: value } } : current
  }, document)
}

function complete(settings: ConfigDocument, document: unknown, providers: readonly ProviderSettings[]): GatewayConfig {
  const byName = new Map(providers.map((provider) => [provider.name, provider]))
  return {
    ...settings,
    auth: {
      ...settings.auth,
      keys: settings.auth.keys.map(({ key, ...entry }) => ({ ...entry, sha256: key })),
      ...mistakableKeys(settings, document),
    },
    channels: settings.channels.map((channel) => ({
      ...channel,
      timeouts: channelTimeouts(byName.get(channel.provider), channel.timeouts, settings.timeouts, document),
    })),
  }
}
