import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { scratchDirectory, startService } from '../processes.mjs'
import { GATEWAY_FLAGS, GATEWAY_SCRIPT } from '../session.mjs'

const REPLAY_SCRIPT = fileURLToPath(new URL('replay.mjs', import.meta.url))
const UPSTREAM_SCRIPT = fileURLToPath(new URL('../upstream.mjs', import.meta.url))

/**
 * Starts the bench upstream, a replay of it if `configOf` takes one, and a gateway with what `configOf(upstreamUrl, replayUrl)` returns
 * as YAML, on a processor of its own where there are two.
 * @returns {Promise<{ gateway: Service, machine: object }>}
 */
export async function startPinned(configOf) {
  const readyPath = '/__bench/counters'
  const upstream = await startService({ name: 'upstream', script: UPSTREAM_SCRIPT, readyPath })
  const upstreams = [upstream]
  if (configOf.length > 1) {
    const environment = { UPSTREAM_PORT: String(upstream.port) }
    upstreams.push(await startService({ name: 'replay', script: REPLAY_SCRIPT, environment, readyPath }))
  }
  const config = join(scratchDirectory(), 'gateway.yaml')
  writeFileSync(config, configOf(...upstreams.map(urlOf)))
  const gateway = await startService({
    name: 'gateway',
    script: GATEWAY_SCRIPT,
    flags: GATEWAY_FLAGS,
    environment: { GATEWAY_CONFIG: config, GATEWAY_DATA: join(scratchDirectory(), 'data') },
    readyPath: '/health/ready',
  })
  const cores = cpus()
  const machine = {
    cpu: cores[0]?.model ?? 'unknown',
    cores: cores.length,
    node: process.version,
    pinned: pin(cores.length, gateway.pid, [...upstreams.map(({ pid }) => pid), process.pid]),
  }
  return { gateway, machine }
}

const urlOf = ({ port }) => `http://127.0.0.1:${port}`

/** Gives the gateway a processor of its own, as the driver would otherwise be what is measured; whether that went. */
function pin(cores, gatewayPid, otherPids) {
  if (cores < 2) return false
  try {
    const others = cores === 2 ? '1' : `1-${cores - 1}`
    execFileSync('taskset', ['-acp', '0', String(gatewayPid)], { stdio: 'ignore' })
    for (const pid of otherPids) execFileSync('taskset', ['-acp', others, String(pid)], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
