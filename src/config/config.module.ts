import { type DynamicModule, Module } from '@nestjs/common'
import { ConfigModule } from '@nestjs/config'
import { type ConfigSource, ConfigStore } from './config-store.js'
import { environmentConfig, sandboxEnvironmentConfig } from './environment.js'
import type { GatewayConfig } from './settings.js'

export interface ConfigurationOptions {
  /** What the process starts with. */
  readonly config: GatewayConfig
  /** Where a reload reads; absent in sandbox mode, where a reload is refused. */
  readonly reloadFrom?: ConfigSource
  /** Absent = false. What the sandbox keeps lies in a directory of its own. */
  readonly sandbox?: boolean
}

/** Gives `ConfigStore` and the environment (`environmentConfig.KEY`) to every module. */
@Module({})
export class ConfigurationModule {
  static forRoot({ config, reloadFrom, sandbox = false }: ConfigurationOptions): DynamicModule {
    return {
      module: ConfigurationModule,
      global: true,
      imports: [ConfigModule.forFeature(sandbox ? sandboxEnvironmentConfig : environmentConfig)],
      providers: [{ provide: ConfigStore, useFactory: () => new ConfigStore(config, reloadFrom) }],
      exports: [ConfigStore, ConfigModule],
    }
  }
}
