// Docker or Podman, by the commands that both have, and the causes of failure outside of this repository.
import { execFile } from 'node:child_process'

const ENGINES = ['docker', 'podman']

/** Of one command; the longest is a build on a slow machine. */
const COMMAND_MS = 30 * 60_000

/** With `up --wait`. */
const OLDEST_COMPOSE = 2

/** A cause outside of this repository: a test that cannot run because of it has not failed. */
export class Outside extends Error {}

/** The message of an engine's client whose daemon does not respond. A user without permission is another matter. */
const DAEMON_UNREACHABLE =
  /Cannot connect to (?:the Docker daemon|Podman)|failed to connect to the docker API|error during connect/
const NO_PERMISSION = /permission denied/i

/** How both engines quote their HTTP client, and its messages if it reaches no registry. Refusals are not among them. */
const HTTP_CLIENT = /\b(?:Get|Head) "https?:\/\/[^"]+": (.*)/
const NO_CONNECTION =
  /^(?:dial tcp|proxyconnect tcp|context deadline exceeded|net\/http: (?:TLS handshake|request cancel))/

/** Why there is no engine, or undefined if the failure has another cause. */
const absenceOf = ({ isMissing, failure }) => {
  if (isMissing) return 'it is not installed'
  return DAEMON_UNREACHABLE.test(failure) && !NO_PERMISSION.test(failure) ? 'nobody answers it' : undefined
}

const isUnreachable = (failure) => NO_CONNECTION.test(HTTP_CLIENT.exec(failure)?.[1] ?? '')

const lastLine = (text) => text.trim().split('\n').at(-1)

/** Runs a program to its end. `failure` is its output, or undefined on success. Never rejects. */
export function call(program, parameters, env = process.env) {
  return new Promise((resolve) => {
    execFile(program, parameters, { env, timeout: COMMAND_MS, maxBuffer: 2 ** 28 }, (error, stdout, stderr) => {
      const late = error?.killed ? `\nended after ${COMMAND_MS / 60_000} minutes` : ''
      const said = `${`${stdout}${stderr}`.trim() || error?.message}${late}`
      resolve({ text: stdout.trim(), failure: error ? said : undefined, isMissing: error?.code === 'ENOENT' })
    })
  })
}

/** The output of a command. Rejects with the output if it fails. */
export async function run([program, ...parameters], env) {
  const { text, failure } = await call(program, parameters, env)
  if (failure !== undefined) throw new Error(`${program} ${parameters.join(' ')} failed:\n${failure}`)
  return text
}

/** An engine that responds. */
export class ContainerEngine {
  constructor(name) {
    this.name = name
  }

  /** Rejects with `Outside` if there is none. An installed engine that cannot be used is an error. */
  static async find() {
    const reasons = []
    for (const name of ENGINES) {
      const answer = await call(name, ['info'])
      if (answer.failure === undefined) return new ContainerEngine(name)
      reasons.push({ name, absence: absenceOf(answer), failure: answer.failure })
    }
    const unusable = reasons.find(({ absence }) => absence === undefined)
    if (unusable) throw new Error(`${unusable.name} is here and cannot be used: ${lastLine(unusable.failure)}`)
    throw new Outside(`no container engine (${reasons.map(({ name, absence }) => `${name}: ${absence}`).join('; ')})`)
  }

  /** The first words of each command of Compose. Rejects if there is none that has `--wait`. */
  async compose() {
    for (const words of [[this.name, 'compose'], ['docker-compose']]) {
      const [program, ...rest] = words
      const { text, failure } = await call(program, [...rest, 'version', '--short'])
      if (failure === undefined && Number.parseInt(text.replace(/^v/, ''), 10) >= OLDEST_COMPOSE) return words
    }
    throw new Error(`${this.name} answers, but there is no Docker Compose ${OLDEST_COMPOSE} or later: install it.`)
  }

  /** Fetches what is not here. Rejects with `Outside` where the registry cannot be reached, and only then. */
  async fetch(images) {
    for (const image of images) {
      if ((await call(this.name, ['image', 'inspect', image])).failure === undefined) continue
      const { failure } = await call(this.name, ['pull', image])
      if (failure === undefined) continue
      if (isUnreachable(failure)) throw new Outside(`the registry of ${image} cannot be reached: ${lastLine(failure)}`)
      throw new Error(`${this.name} pull ${image} failed:\n${failure}`)
    }
  }

  /** What the engine knows of a container. */
  async inspect(container) {
    return JSON.parse(await run([this.name, 'inspect', container]))[0]
  }
}
