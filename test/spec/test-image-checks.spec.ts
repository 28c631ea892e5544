import { describe, expect, it } from '@jest/globals'
import {
  GOOD_ANSWERS,
  type ProductionAnswers,
  startCallersPort,
  startOperatorsPort,
} from '../support/test-image-lab.js'

interface Override {
  readonly services: Readonly<Record<string, object>>
  readonly secrets: Readonly<Record<string, { readonly file: string }>>
}

const load = (name: string): Promise<unknown> =>
  import(new URL(`../../scripts/${name}`, import.meta.url).href) as Promise<unknown>

const { checkProduction } = (await load('test-image-checks.mjs')) as { checkProduction: (set: object) => Promise<void> }
const { composeFile, foreignImages, overrideFor } = (await load('test-image-sets.mjs')) as {
  composeFile: () => Override
  foreignImages: (file: Override, profile: string, baseImage: string) => readonly string[]
  overrideFor: (file: Override, folder: string, nodeImage?: string) => Override
}

describe('the production set of npm run test:image', () => {
  const check = async (answers: ProductionAnswers): Promise<void> => {
    const servers = await Promise.all([startCallersPort(answers), startOperatorsPort(answers)])
    const [callersUrl, operatorsUrl] = servers.map(({ port }) => `http://127.0.0.1:${port}`)
    try {
      await checkProduction({
        callersUrl,
        operatorsUrl,
        prometheusUrl: operatorsUrl,
        key: 'k',
        adminKey: 'a',
        scrapedMs: 1,
      })
    } finally {
      await Promise.all(servers.map((server) => server.close()))
    }
  }

  it.each<[string, Partial<ProductionAnswers>, RegExp]>([
    ['is not ready', { ready: { status: 'store_unreachable' } }, /store_unreachable/],
    ['cuts a stream', { stream: GOOD_ANSWERS.stream.replace('data: [DONE]\n\n', '') }, /no whole stream/],
    ['answers of its own accord', { channel: '' }, /p1-main/],
    ['counts limits in each replica', { limits: { shared: false } }, /limits are counted together/],
    ['opens /admin to callers', { adminStatus: 200 }, /\/admin\/v1\/keys answered 200/],
    ['does not watch a replica', { up: ['gateway-1:9090', 'balancer:8405'] }, /what Prometheus reaches/],
  ])('fails where it %s', async (_what, answers, message) => {
    await expect(check({ ...GOOD_ANSWERS, ...answers })).rejects.toThrow(message)
  })
})

describe('what npm run test:image lays over docker-compose.yml', () => {
  it('is images, the configuration, secrets and an upstream: no right, port, limit or health check', () => {
    const file = composeFile()
    const { services, secrets } = overrideFor(file, '/elsewhere', 'base:1')
    const { upstream, ...own } = services
    expect(Object.keys(own).sort()).toEqual(['gateway-1', 'gateway-2', 'sandbox'])
    const settings = new Set(Object.values(own).flatMap((service) => Object.keys(service)))
    expect([...settings].sort()).toEqual(['build', 'image', 'volumes'])
    expect(own['sandbox']).toEqual({
      image: 'multi-model-gateway:test',
      build: { context: '.', args: { NODE_IMAGE: 'base:1' } },
    })
    expect(upstream).toMatchObject({ image: 'multi-model-gateway:test', profiles: ['production'] })
    expect(Object.keys(secrets)).toEqual(Object.keys(file.secrets))
    expect(Object.values(secrets).filter((secret) => !secret.file.startsWith('/elsewhere/secrets/'))).toEqual([])
  })
  it('needs the images of others fetched before, and the one that ours is built on', () => {
    const file = composeFile()
    expect(foreignImages(file, 'sandbox', 'base:1')).toEqual(['base:1'])
    const names = foreignImages(file, 'production', 'base:1').map((image) => image.split(':')[0])
    expect(names).toEqual(['base', 'haproxy', 'postgres', 'redis', 'prom/prometheus'])
  })
})
