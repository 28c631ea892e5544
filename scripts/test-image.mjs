// Builds the image and runs it as docker-compose.yml does: read-only, without rights. Needs a Docker engine; without one
// it says so and ends well, as the tests of the files themselves run everywhere.
import { spawnSync } from 'node:child_process'

const IMAGE = 'multi-model-gateway:test'
const PATIENCE_MS = 60_000

/** Throws with what the program said when it fails. */
function docker(...parameters) {
  const { status, stdout, stderr } = spawnSync('docker', parameters, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`docker ${parameters.join(' ')} failed:\n${stderr ?? 'not installed'}`)
  return stdout.trim()
}

const hasEngine = () => spawnSync('docker', ['info'], { stdio: 'ignore' }).status === 0

async function healthOf(container) {
  const endsAtMs = performance.now() + PATIENCE_MS
  for (;;) {
    const health = docker('inspect', '--format', '{{.State.Health.Status}}', container)
    if (health !== 'starting' || performance.now() > endsAtMs) return health
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}

async function run() {
  docker('build', '--tag', IMAGE, '.')
  const rights = ['--read-only', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges', '--tmpfs', '/tmp']
  const container = docker('run', '--detach', ...rights, '--volume', '/app/data', '--publish', '127.0.0.1::8080', IMAGE)
  try {
    const health = await healthOf(container)
    if (health !== 'healthy') throw new Error(`the container is ${health}:\n${docker('logs', container)}`)
    const address = docker('port', container, '8080')
    const answer = await fetch(`http://${address}/v1/models`, { headers: { authorization: 'Bearer sandbox-demo-key' } })
    if (!answer.ok) throw new Error(`the gateway in the container answered ${answer.status}`)
    docker('stop', container)
    const code = docker('inspect', '--format', '{{.State.ExitCode}}', container)
    if (code !== '0') throw new Error(`the container ended with ${code}`)
    console.log('The image was built, ran read-only, served, and drained.')
  } finally {
    docker('rm', '--force', '--volumes', container)
  }
}

if (hasEngine()) await run()
else console.log('NOT RUN: there is no Docker engine here, so the image was neither built nor started.')
