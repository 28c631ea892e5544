import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort, startParts } from '../support/gateway-process.js'
import { type Daemon, startDaemon, until } from './daemon.js'

/** The repository's own file, as docker-compose.yml mounts it. */
const CONFIGURATION = fileURLToPath(new URL('../../deploy/haproxy/haproxy.cfg', import.meta.url))

export interface Balancer {
  /** Where callers connect. */
  readonly url: string
  /** Where operators connect. */
  readonly operatorsUrl: string
  readonly metricsUrl: string
  /** Whether it sends requests to the replica of that number, from 1. */
  isUp(replica: number): Promise<boolean>
  /** Requests and sockets that it has at that replica now. */
  sessions(replica: number): Promise<number>
  /** How many answers it has passed on from that replica since its start. */
  answers(replica: number): Promise<BalancerAnswers>
  /** Resolves once it does, or does not. */
  shows(replica: number, isUp: boolean): Promise<void>
  /** One command of HAProxy's runtime interface. */
  ask(command: string): Promise<string>
  /** Stops it as docker-compose.yml does: what runs may end, nothing new is taken. Resolves with its exit code. */
  drain(): Promise<number | null>
  close(): Promise<void>
}

/** Of one replica, by their statuses: 200 to 299, and 400 to 499. */
export interface BalancerAnswers {
  readonly served: number
  readonly refused: number
}

/** Makes another configuration of the text of the repository's. */
export type ConfigurationChange = (text: string) => string

/**
 * HAProxy with the repository's configuration, as it is or changed, in front of these addresses (`host:port`, two to four of
 * them). Resolves once clients can connect and it handles SIGTERM.
 */
export function startBalancer(addresses: readonly string[], change?: ConfigurationChange): Promise<Balancer> {
  return startParts(async (closedAtLast) => {
    const directory = await mkdtemp(join(tmpdir(), 'gateway-balancer-'))
    closedAtLast({ close: () => rm(directory, { recursive: true, force: true }) })
    const ports = {
      port: await freePort(),
      operatorsPort: await freePort(),
      metricsPort: await freePort(),
      socket: join(directory, 'haproxy.sock'),
      masterSocket: join(directory, 'master.sock'),
    }
    const configuration = change === undefined ? CONFIGURATION : await writeChanged(directory, change)
    const daemon = await launch(addresses, configuration, ports)
    // A master that is killed could not end its worker.
    closedAtLast({ close: () => daemon.end('SIGTERM') })
    const metricsUrl = `http://127.0.0.1:${ports.metricsPort}`
    await until(
      async () => (await fetch(`${metricsUrl}/live`).catch(() => undefined))?.ok === true || undefined,
      () => `haproxy does not listen:\n${daemon.output()}`,
    )
    // The worker serves sooner than the master knows of it: a signal in between is lost.
    await until(
      async () => /worker/.test(await askSocket(ports.masterSocket, 'show proc').catch(() => '')) || undefined,
      () => `haproxy's master knows of no worker:\n${daemon.output()}`,
    )
    return {
      url: `http://127.0.0.1:${ports.port}`,
      operatorsUrl: `http://127.0.0.1:${ports.operatorsPort}`,
      metricsUrl,
      ...knowledgeOf(ports.socket, daemon),
      drain: async () => {
        await daemon.end('SIGUSR1')
        return daemon.child.exitCode
      },
    }
  })
}

/** Where one HAProxy is reached; the sockets are paths. */
interface BalancerPorts {
  readonly port: number
  readonly operatorsPort: number
  readonly metricsPort: number
  readonly socket: string
  readonly masterSocket: string
}

/** @returns the path of the changed file */
async function writeChanged(directory: string, change: ConfigurationChange): Promise<string> {
  const file = join(directory, 'haproxy.cfg')
  await writeFile(file, change(await readFile(CONFIGURATION, 'utf8')))
  return file
}

function launch(addresses: readonly string[], configuration: string, ports: BalancerPorts): Promise<Daemon> {
  const servers = Object.fromEntries(addresses.map((address, index) => [`GATEWAY_${index + 1}`, address]))
  return startDaemon({
    program: 'haproxy',
    // As its image runs it, with a master that passes signals on to the worker; `-S` lets the master be asked.
    parameters: ['-W', '-db', '-S', ports.masterSocket, '-f', configuration],
    variables: {
      ...servers,
      HAPROXY_BIND: `127.0.0.1:${ports.port}`,
      HAPROXY_OPERATORS: `127.0.0.1:${ports.operatorsPort}`,
      HAPROXY_METRICS: `127.0.0.1:${ports.metricsPort}`,
      HAPROXY_SOCKET: ports.socket,
    },
    debianPackage: 'haproxy',
  })
}

/** What it tells of itself at its runtime interface. */
function knowledgeOf(
  socket: string,
  daemon: Daemon,
): Pick<Balancer, 'isUp' | 'sessions' | 'answers' | 'shows' | 'ask'> {
  const ask = (command: string): Promise<string> => askSocket(socket, command)
  const statistic = async (replica: number, name: string): Promise<string> =>
    statisticIn(await ask('show stat'), replica, name)
  const isUp = async (replica: number): Promise<boolean> => (await statistic(replica, 'status')).startsWith('UP')
  return {
    isUp,
    sessions: async (replica) => Number(await statistic(replica, 'scur')),
    answers: async (replica) => {
      const table = await ask('show stat')
      return {
        served: Number(statisticIn(table, replica, 'hrsp_2xx')),
        refused: Number(statisticIn(table, replica, 'hrsp_4xx')),
      }
    },
    ask,
    shows: async (replica, wanted) => {
      await until(
        async () => (await isUp(replica)) === wanted || undefined,
        () => `the balancer takes replica ${replica} for ${wanted ? 'down' : 'up'}:\n${daemon.output()}`,
      )
    },
  }
}

async function askSocket(path: string, command: string): Promise<string> {
  const socket = connect(path)
  socket.end(`${command}\n`)
  let answer = ''
  for await (const chunk of socket) answer += String(chunk)
  return answer
}

/** `show stat` is CSV with a header; the first two columns are backend and server. */
function statisticIn(table: string, replica: number, name: string): string {
  const [head = '', ...rows] = table.split('\n')
  const column = head.split(',').indexOf(name)
  const row = rows.find((candidate) => candidate.startsWith(`gateways,gateway-${replica},`))
  return row?.split(',')[column] ?? ''
}
