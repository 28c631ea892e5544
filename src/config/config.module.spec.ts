import { afterEach, describe, expect, it } from '@jest/globals'
import { Inject, Injectable, Module } from '@nestjs/common'
import { Test, type TestingModule } from '@nestjs/testing'
import { ConfigStore } from './config-store.js'
import { ConfigurationModule } from './config.module.js'
import { type Environment, environmentConfig, readEnvironment } from './environment.js'
import { parseConfig } from './load-config.js'

@Injectable()
class Reader {
  constructor(
    readonly store: ConfigStore,
    @Inject(environmentConfig.KEY) readonly environment: Environment,
  ) {}
}

@Module({ providers: [Reader] })
class DistantModule {}

let nest: TestingModule | undefined

afterEach(async () => {
  await nest?.close()
})

describe('ConfigurationModule', () => {
  it('gives the store and the environment to a module that imports nothing', async () => {
    const config = parseConfig('{}', {})
    nest = await Test.createTestingModule({
      imports: [ConfigurationModule.forRoot({ config }), DistantModule],
    }).compile()
    const { store, environment } = nest.get(Reader, { strict: false })
    expect(store.current).toBe(config)
    expect(environment).toEqual(readEnvironment(process.env))
    expect(await store.reload()).toMatchObject({ applied: false })
  })

  it('gives the environment of a sandbox to a sandbox, by the same key', async () => {
    const module = ConfigurationModule.forRoot({ config: parseConfig('{}', {}), sandbox: true })
    nest = await Test.createTestingModule({ imports: [module, DistantModule] }).compile()
    expect(nest.get(Reader, { strict: false }).environment).toEqual(readEnvironment(process.env, true))
  })

  it('reloads from where it was told', async () => {
    const next = parseConfig('{logging: {level: error}}', {})
    const module = ConfigurationModule.forRoot({
      config: parseConfig('{}', {}),
      reloadFrom: () => Promise.resolve({ config: next, file: '' }),
    })
    nest = await Test.createTestingModule({ imports: [module] }).compile()
    const store = nest.get(ConfigStore)
    await store.reload()
    expect(store.current).toBe(next)
  })
})
