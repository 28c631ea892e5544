import { createReadStream } from 'node:fs'
import { resolve } from 'node:path'
import { ConfigError, FAULTED, FaultList, isMap } from './config-fault.js'
import { deepFreeze } from './deep-freeze.js'
import { type EnvironmentOverride, readEnvironment } from './environment.js'
import { interpolate } from './interpolation.js'
import { mistakableKeys } from './mistakable-keys.js'
import { channelTimeouts } from './provider-timeouts.js'
import { Cursor } from './schema-schema.js'
import { type ConfigDocument, configSchema } from './schema.js'
import type { GatewayConfig } from './settings.js'
import type { Variables } from './variable.js'
import { readYaml } from './yaml-document.js'

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
export async function loadConfigFile(path: string, env: Variables): Promise<LoadedConfig | undefined> {
  const file = resolve(path)
  const text = await readConfigText(file, env)
  return text === undefined ? undefined : { config: parseConfig(text, env), file }
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
 * The complete, frozen configuration that `yamlText` and the environment give together. Pure. Throws `ConfigError` with
 * every fault of both.
 */
export function parseConfig(yamlText: string, env: Variables): GatewayConfig {
  const { overrides, production } = readEnvironment(env)
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
  const checked = configSchema.read(withOverrides(document, overrides), new Cursor('', { faults, production }))
  faults.throwIfAny()
  if (checked === FAULTED) throw new Error('a configuration was refused without a fault')
  return deepFreeze(complete(checked, document))
}

function withoutOverridden(document: unknown, overrides: readonly EnvironmentOverride[]): unknown {
  return withOverrides(
    document,
    overrides.map((override) => ({ ...override, value: null })),
  )
}

type Override = Pick<EnvironmentOverride, 'section' | 'setting'> & { readonly value?: string | null }

/** Lays the overrides over the document; what is not a map stays as it is and becomes a fault of its own. */
function withOverrides(document: unknown, overrides: readonly Override[]): unknown {
  return overrides.reduce((current, { section, setting, value = FAULTED }) => {
    if (!isMap(current)) return current
    const settings = current[section] ?? {}
    return isMap(settings) ? { ...current, [section]: { ...settings, [setting]: value } } : current
  }, document)
}

function complete(checked: ConfigDocument, document: unknown): GatewayConfig {
  return {
    ...checked,
    auth: {
      ...checked.auth,
      keys: checked.auth.keys.map(({ key, ...entry }) => ({ ...entry, sha256: key })),
      ...mistakableKeys(checked, document),
    },
    channels: checked.channels.map((channel) => ({
      ...channel,
      timeouts: channelTimeouts(channel.provider, channel.timeouts, checked.timeouts, document),
    })),
  }
}
