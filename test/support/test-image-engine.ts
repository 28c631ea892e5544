import { emptyDirectory, runGateway } from './gateway-process.js'
import { startParts } from './start-parts.js'
import { GOOD_ANSWERS, type Rule, startCallersDoor, startOperatorsDoor } from './test-image-lab.js'

/** What a container of the gateway says of itself. */
export const RIGHTS = { user: 1000, capabilities: '0000000000000000', memoryBytes: 3 * 2 ** 30, writing: 'EROFS' }
export const CONTAINER = {
  State: { Health: { Status: 'healthy' }, ExitCode: 0, OOMKilled: false },
  HostConfig: { ReadonlyRootfs: true },
  Config: { User: 'node' },
}

/** What is made of keys in a container. */
export const KEY = `${GOOD_ANSWERS.hint}-in-a-container`

/** What the sandbox logs when it is told to stop, and when the stream is over. */
export const DRAINING = '{"signal":"SIGTERM","msg":"draining"}'
export const STREAM_OVER = '{"requestId":"runs-at-the-stop","status":200,"msg":"request"}'

export const logged = (...lines: readonly string[]): Rule => ({ on: ' logs --no-color \\S+$', says: lines.join('\n') })
export const inspected = (container: object): Rule => ({ on: '^inspect ', says: JSON.stringify([container]) })
export const inside = (rights: object): Rule => ({ on: ' exec -T \\S+ node -p', says: JSON.stringify(rights) })

/** An engine on which everything goes well. */
export interface WellEngine {
  readonly rules: readonly Rule[]
  close(): Promise<unknown>
}

/** The sandbox behind it is a real one; what production says are its answers at best. */
export function startWellEngine(): Promise<WellEngine> {
  return startParts(async (closedAtLast) => {
    const sandbox = closedAtLast(runGateway(await emptyDirectory()))
    const callers = closedAtLast(await startCallersDoor(GOOD_ANSWERS))
    const operators = closedAtLast(await startOperatorsDoor(GOOD_ANSWERS))
    const rules = [
      { on: '^compose version --short$', says: '2.29.1' },
      published('sandbox 8080', new URL(await sandbox.listening()).port),
      published('balancer 8080', callers.port),
      published('balancer 8081', operators.port),
      published('prometheus 9090', operators.port),
      inspected(CONTAINER),
      inside(RIGHTS),
      logged(DRAINING, STREAM_OVER),
      { on: ' exec -T gateway-1 node dist/keys-cli.js create ', says: KEY },
    ]
    return { rules }
  })
}

const published = (service: string, port: number | string): Rule => ({
  on: ` port ${service}$`,
  says: `0.0.0.0:${port}`,
})
