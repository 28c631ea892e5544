// Docker or Podman, whichever answers here, by the commands that both know; and what lies outside of this repository.
import { execFile } from 'node:child_process'

const ENGINES = ['docker', 'podman']

/** Of one command; the longest is a build on a slow machine. */
const COMMAND_MS = 30 * 60_000

/** With `up --wait`. */
const OLDEST_COMPOSE = 2

/** Nothing that is tested here can be at fault, so that a test that cannot be run for it has not failed. */
export class Outside extends Error {}

/** The engine's own words where it has a client and nobody behind it. A user without rights is not among them. */
const NOBODY_ANSWERS =
  /Cannot connect to (?:the Docker daemon|Podman)|failed to connect to the docker API|error during connect/
const NO_RIGHTS = /permission denied/i

/** How both engines quote their HTTP client, and what that says when it reaches no registry. Refusals are not in it. */
const HTTP_CLIENT = /\b(?:Get|Head) "https?:\/\/[^"]+": (.*)/
const NO_WAY = /^(?:dial tcp|proxyconnect tcp|context deadline exceeded|net\/http: (?:TLS handshake|request cancel))/

/** Why no engine answers, or undefined where that is another matter. */
const absenceOf = ({ isMissing, failure }) => {
  if (isMissing) return 'it is not installed'
  return NOBODY_ANSWERS.test(failure) && !NO_RIGHTS.test(failure) ? 'nobody answers it' : undefined
}

const isUnreachable = (failure) => NO_WAY.test(HTTP_CLIENT.exec(failure)?.[1] ?? '')

const lastLine = (text) => text.trim().split('\n').at(-1)

/** Runs a program to its end. `failure` is what it said, or undefined when it went well. Never rejects. */
export function call(program, parameters, env = process.env) {
  return new Promise((resolve) => {
    execFile(program, parameters, { env, timeout: COMMAND_MS, maxBuffer: 2 ** 28 }, (error, stdout, stderr) => {
      const late = error?.killed ? `\nended after ${COMMAND_MS / 60_000} minutes` : ''
      const said = `${`${stdout}${stderr}`.trim() || error?.message}${late}`
      resolve({ text: stdout.trim(), failure: error ? said : undefined, isMissing: error?.code === 'ENOENT' })
    })
  })
}

/** What a command prints. Rejects with what it said when it fails. */
export async function run([program, ...parameters], env) {
  const { text, failure } = await call(program, parameters, env)
  if (failure !== undefined) throw new Error(`${program} ${parameters.join(' ')} failed:\n${failure}`)
  return text
}

/** An engine that answers. */
export class ContainerEngine {
  constructor(name) {
    this.name = name
  }

  /** Rejects with `Outside` where there is none. One that is there and cannot be used is a fault. */
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

  /** The words that begin each command of Compose. Rejects where there is none that knows how to wait. */
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
