import { CHAT_PATH, chatText } from '../support/chat-bodies.js'
import { TEST_KEY } from '../support/gateway.js'
import { type GatewayProcess, runGateway } from '../support/gateway-process.js'
import { sendRaw } from '../support/raw-http.js'
import { until } from './daemon.js'
import { childrenOf } from './worker-processes.js'

/** A chat request on a connection of its own; its status, 0 where no connection came about. */
export const chat = (url: string, key = TEST_KEY): Promise<number> =>
  sendRaw(url, { path: CHAT_PATH, headers: { authorization: `Bearer ${key}` }, body: chatText('Hello') }).then(
    ({ status }) => status,
    () => 0,
  )

/** A gateway of several workers in a directory with its configuration. */
export class WorkerLab {
  url = ''
  private current: GatewayProcess | undefined

  constructor(readonly directory: string) {}

  /** Throws before `run`. */
  get gateway(): GatewayProcess {
    if (this.current === undefined) throw new Error('nothing runs yet')
    return this.current
  }

  /** Not listening yet. */
  start(variables: Readonly<Record<string, string>>): void {
    this.current = runGateway(this.directory, variables)
  }

  /** Resolves with the address when all workers listen. */
  async listening(): Promise<string> {
    this.url = await this.gateway.listening()
    return this.url
  }

  /** So many requests, each on a connection of its own; their statuses. */
  chats(count: number, key?: string): Promise<number[]> {
    return Promise.all(Array.from({ length: count }, () => chat(this.url, key)))
  }

  /** Requests that the log has of a worker. */
  servedBy(worker: number): number {
    return [...this.gateway.output().matchAll(new RegExp(`^\\{"worker":${worker},.*"msg":"request"`, 'gm'))].length
  }

  /**
   * Kills the oldest worker; resolves when the one in its place has served, with the statuses of all requests until then.
   */
  async replaceOldest(key?: string): Promise<ReadonlySet<number>> {
    const { gateway } = this
    const [victim = 0] = await childrenOf(gateway.child.pid)
    const seen = gateway.output().length
    process.kill(victim, 'SIGKILL')
    const [, worker] = await until(
      () => Promise.resolve(/"ofWorker":(\d+),.*a worker died/.exec(gateway.output().slice(seen)) ?? undefined),
      () => `no worker died:\n${gateway.output().slice(-2000)}`,
    )
    const servedBefore = this.servedBy(Number(worker))
    const statuses = new Set<number>()
    await until(
      async () => {
        for (const status of await this.chats(2, key)) statuses.add(status)
        return this.servedBy(Number(worker)) > servedBefore || undefined
      },
      () => `the new worker serves nothing:\n${gateway.output().slice(-2000)}`,
    )
    return statuses
  }
}
