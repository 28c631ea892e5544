/** Proxies that others have made, as further yardsticks where they are installed: what they take for the same request. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { scratchDirectory, startService } from '../processes.mjs'
import { UPSTREAM_KEY } from '../wire.mjs'
import { nginxConfig } from './nginx.mjs'

const GO_SOURCE = fileURLToPath(new URL('reverse-proxy.go', import.meta.url))
const READY_PATH = '/health/ready'

const isInstalled = (command, flag) => spawnSync(command, [flag]).status === 0

function startGo(upstreamUrl) {
  const program = join(scratchDirectory(), 'reverse-proxy')
  execFileSync('go', ['build', '-o', program, GO_SOURCE])
  const environment = { UPSTREAM: upstreamUrl, UPSTREAM_KEY, GOMAXPROCS: '2' }
  return startService({ name: 'go', program: () => [program], environment, readyPath: READY_PATH })
}

function startNginx(upstreamUrl) {
  const directory = mkdtempSync(join(scratchDirectory(), 'nginx-'))
  const file = join(directory, 'nginx.conf')
  const program = (port) => {
    writeFileSync(file, nginxConfig({ port, upstreamUrl, upstreamKey: UPSTREAM_KEY, directory }))
    return ['nginx', '-p', directory, '-c', file]
  }
  return startService({ name: 'nginx', program, readyPath: READY_PATH })
}

/** By the name of the role they have in the run. */
export const PEERS = {
  go: { title: 'Go ReverseProxy', isInstalled: () => isInstalled('go', 'version'), start: startGo },
  nginx: { title: 'nginx', isInstalled: () => isInstalled('nginx', '-v'), start: startNginx },
}
