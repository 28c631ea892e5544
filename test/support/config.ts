import { PROVIDERS } from '../../src/app/providers.js'
import type { Variables } from '../../src/config/environment.js'
import * as loading from '../../src/config/load-config.js'
import { configSchema as schemaFor, type GatewayConfig } from '../../src/config/settings.js'

/** A configuration as the gateway reads it, with every provider that it has. */
export const parseConfig = (yamlText: string, env: Variables): GatewayConfig =>
  loading.parseConfig(yamlText, env, PROVIDERS)

/** A configuration file as the gateway reads it, with every provider that it has. */
export const loadConfigFile = (path: string, env: Variables): Promise<loading.LoadedConfig | undefined> =>
  loading.loadConfigFile(path, env, PROVIDERS)

export const configSchema = schemaFor(PROVIDERS)
