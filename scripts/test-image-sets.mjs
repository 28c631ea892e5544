// The sets of docker-compose.yml, each brought up under a name of its own, with secrets and settings to be thrown away.
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { call, run } from './container-engine.mjs'

const COMPOSE_FILE = 'docker-compose.yml'

/** Not the operator's own tag: a test must not touch containers of that tag. */
const IMAGE = 'multi-model-gateway:test'

/** For all services of a set to become healthy, on a slow machine. */
const HEALTHY_SECONDS = '300'

/** The key of the sandbox that plays the upstream. */
const UPSTREAM_KEY = 'sandbox-demo-key'

const LOG_LINES = '60'

/** The minimal production configuration of docs/deployment.md, with one limit, so that Redis is used. */
const CONFIGURATION = {
  auth: {
    adminKey: '${GATEWAY_ADMIN_KEY}',
    keys: [{ id: 'team-a', key: '${TEAM_A_KEY}', limits: { requestsPerMinute: 1000 } }],
  },
  callbacks: { secret: '${CALLBACK_SECRET}' },
  channels: [{ id: 'p1-main', provider: 'p1', baseUrl: 'http://upstream:8080', credentials: '${P1_KEY}' }],
}

/** docker-compose.yml as it stands. */
export function composeFile() {
  return parse(readFileSync(COMPOSE_FILE, 'utf8'), { merge: true })
}

/** Names of the services of a set. */
function servicesOf(file, profile) {
  return Object.keys(file.services).filter((name) => file.services[name].profiles.includes(profile))
}

/** What has to be fetched before a set can be built and started: the images of others. */
export function foreignImages(file, profile, baseImage) {
  const images = servicesOf(file, profile).map((name) => file.services[name].image)
  return [baseImage, ...images.filter((image) => image !== file.services.sandbox.image)]
}

/**
 * Laid over docker-compose.yml: an image and secrets of its own, the settings above, a sandbox that plays the upstream.
 * Rights, limits, ports, networks and health checks stay as they are.
 */
export function overrideFor(file, folder, nodeImage) {
  const build = { context: '.', ...(nodeImage && { args: { NODE_IMAGE: nodeImage } }) }
  const own = Object.keys(file.services).filter((name) => file.services[name].image === file.services.sandbox.image)
  const gateways = own.map((name) => [
    name,
    {
      image: IMAGE,
      ...(file.services[name].build && { build }),
      ...(name !== 'sandbox' && { volumes: [`${join(folder, 'gateway.yaml')}:/app/gateway.yaml:ro`] }),
    },
  ])
  const upstream = { image: IMAGE, pull_policy: 'never', profiles: ['production'], networks: ['outside'] }
  const secrets = Object.keys(file.secrets).map((name) => [name, { file: join(folder, 'secrets', name) }])
  return { services: { ...Object.fromEntries(gateways), upstream }, secrets: Object.fromEntries(secrets) }
}

/** Writes all that into a folder. Secrets are made by a copy of the operators' script: it makes them beside itself. */
export async function prepare(folder, nodeImage) {
  const write = (name, text) => writeFileSync(join(folder, name), text, { mode: 0o444 })
  mkdirSync(join(folder, 'deploy'))
  cpSync('deploy/make-secrets.sh', join(folder, 'deploy/make-secrets.sh'))
  await run(['bash', join(folder, 'deploy/make-secrets.sh')])
  for (const name of ['p1_key', 'm1_key']) write(`secrets/${name}`, UPSTREAM_KEY)
  write('gateway.yaml', JSON.stringify(CONFIGURATION))
  write('override.yaml', JSON.stringify(overrideFor(composeFile(), folder, nodeImage)))
  // Instead of the checkout's .env.
  write('environment', '')
}

/** One set, while it is up. */
export class ComposeSet {
  constructor(engine, compose, { profile, folder }) {
    const files = ['--file', COMPOSE_FILE, '--file', join(folder, 'override.yaml')]
    const apart = ['--env-file', join(folder, 'environment'), '--project-name', `gateway-test-image-${process.pid}`]
    this.engine = engine
    this.folder = folder
    const file = composeFile()
    this.services = servicesOf(file, profile)
    // The others run the same image. Compose fails where two services export one at the same time.
    this.builder = this.services.find((name) => file.services[name].build)
    this.words = [...compose, ...files, ...apart, '--profile', profile]
    this.environment = { ...process.env, COMPOSE_PROFILES: profile }
  }

  run(...parameters) {
    return run([...this.words, ...parameters], this.environment)
  }

  /** Builds it, and resolves once every service is healthy. Rejects with what they logged. */
  async up() {
    try {
      await this.run('build', this.builder)
      await this.run('up', '--detach', '--no-build', '--wait', '--wait-timeout', HEALTHY_SECONDS)
    } catch (error) {
      throw new Error(`${error.message}\n${await this.story()}`, { cause: error })
    }
  }

  /** With all it kept. */
  down() {
    return this.run('down', '--volumes', '--remove-orphans')
  }

  async story() {
    const [program, ...parameters] = this.words
    const ask = async (...more) => (await call(program, [...parameters, ...more], this.environment)).text
    return `${await ask('ps', '--all')}\n${await ask('logs', '--no-color', '--tail', LOG_LINES)}`
  }

  /** Where a published port is reached from this machine. */
  async url(service, port) {
    const address = await this.run('port', service, port)
    return `http://127.0.0.1:${address.split(':').at(-1)}`
  }

  async container(service) {
    return this.engine.inspect(await this.run('ps', '--all', '--quiet', service))
  }

  /** What a script comes to in a container of the gateway. */
  async inside(service, script) {
    return JSON.parse(await this.run('exec', '-T', service, 'node', '-p', script))
  }

  secret(name) {
    return readFileSync(join(this.folder, 'secrets', name), 'utf8')
  }
}
