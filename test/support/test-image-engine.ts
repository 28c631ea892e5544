import { emptyDirectory, runGateway } from './gateway-process.js'
import { GOOD_ANSWERS, type Rule, startCallersDoor, startOperatorsDoor } from './test-image-lab.js'

/** What a container of the gateway says of itself. */
export const RIGHTS = { user: 1000, capabilities: '0000000000000000', memoryBytes: 3 * 2 ** 30, writing: 'EROFS' }
export const CONTAINER = {
  State: { Health: { Status: 'healthy' }, ExitCode: 0, OOMKilled: false },
  HostConfig: { ReadonlyRootfs: true },
  Config: { User: 'node' },
}

export const inspected = (container: object): Rule => ({ on: '^inspect ', says: JSON.stringify([container]) })
export const inside = (rights: object): Rule => ({ on: ' exec -T \\S+ node -p', says: JSON.stringify(rights) })

/** An engine on which everything goes well. */
export interface WellEngine {
  readonly rules: readonly Rule[]
  close(): Promise<unknown>
}

/** The sandbox behind it is a real one; what production says are its answers at best. */
export async function startWellEngine(): Promise<WellEngine> {
  const sandbox = runGateway(await emptyDirectory())
  const [url, callers, operators] = await Promise.all([
    sandbox.listening(),
    startCallersDoor(GOOD_ANSWERS),
    startOperatorsDoor(GOOD_ANSWERS),
  ])
  const published = (service: string, port: number | string): Rule => ({
    on: ` port ${service}$`,
    says: `0.0.0.0:${port}`,
  })
  const rules = [
    { on: '^compose version --short$', says: '2.29.1' },
    published('sandbox 8080', new URL(url).port),
    published('balancer 8080', callers.port),
    published('balancer 8081', operators.port),
    published('prometheus 9090', operators.port),
    inspected(CONTAINER),
    inside(RIGHTS),
  ]
  return { rules, close: () => Promise.all([sandbox.close(), callers.close(), operators.close()]) }
}
