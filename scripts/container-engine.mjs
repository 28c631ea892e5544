// Docker or Podman, whichever can start containers here, by the commands that both know.
import { spawnSync } from 'node:child_process'

const ENGINES = ['docker', 'podman']

/** Runs a program to its end. `failure` is what it said, or undefined when it went well. */
function call(program, parameters) {
  const { status, stdout, stderr, error } = spawnSync(program, parameters, { encoding: 'utf8', maxBuffer: 2 ** 26 })
  const said = `${stdout ?? ''}${stderr ?? ''}`.trim() || (error?.message ?? '')
  return { text: (stdout ?? '').trim(), failure: status === 0 ? undefined : said }
}

/** An engine that answers. */
export class ContainerEngine {
  constructor(name) {
    this.name = name
  }

  /** Undefined where there is none. */
  static find() {
    const name = ENGINES.find((candidate) => call(candidate, ['info']).failure === undefined)
    return name && new ContainerEngine(name)
  }

  /** What a command prints. Throws with what it said when it fails. */
  run(...parameters) {
    const { text, failure } = call(this.name, parameters)
    if (failure !== undefined) throw new Error(`${this.name} ${parameters.join(' ')} failed:\n${failure}`)
    return text
  }

  /** Why no container can be started from that image, or undefined. It is fetched when it is not here. */
  faultOf(image) {
    if (call(this.name, ['image', 'inspect', image]).failure !== undefined) {
      const { failure } = call(this.name, ['pull', image])
      if (failure !== undefined) return `the image ${image} cannot be fetched: ${lastLine(failure)}`
    }
    const { failure } = call(this.name, ['run', '--rm', image, 'true'])
    return failure && `${this.name} cannot start a container: ${lastLine(failure)}`
  }

  /** Podman's own format has no health check. */
  build(image, options) {
    const format = this.name === 'podman' ? ['--format', 'docker'] : []
    this.run('build', ...format, ...options, '--tag', image, '.')
  }

  /** Asks now: Podman's timer needs systemd, Docker's may be seconds away. */
  isHealthy(container) {
    if (this.name === 'podman') return call('podman', ['healthcheck', 'run', container]).failure === undefined
    return this.inspect(container, '.State.Health.Status') === 'healthy'
  }

  inspect(container, field) {
    return this.run('inspect', '--format', `{{${field}}}`, container)
  }
}

const lastLine = (text) => text.split('\n').at(-1)
