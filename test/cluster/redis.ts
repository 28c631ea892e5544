import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../support/free-port.js'
import { type Daemon, startDaemon } from './daemon.js'

/** A real Redis of its own, on a port that it keeps. */
export interface TestRedis {
  /** `redis://127.0.0.1:<port>` */
  readonly url: string
  /** Ends it as a power cut would; what it held is gone. */
  kill(): Promise<void>
  start(): Promise<void>
  /** It keeps its connections, and answers nobody until it is resumed. */
  pause(): void
  resume(): void
  close(): Promise<void>
}

export async function startRedis(): Promise<TestRedis> {
  const directory = await mkdtemp(join(tmpdir(), 'gateway-redis-'))
  const port = await freePort()
  const launch = (): Promise<Daemon> =>
    startDaemon({
      program: 'redis-server',
      parameters: [
        '--port',
        String(port),
        '--bind',
        '127.0.0.1',
        '--save',
        '',
        '--appendonly',
        'no',
        '--dir',
        directory,
      ],
      ready: /Ready to accept connections/,
      debianPackage: 'redis-server',
    })
  let daemon = await launch()
  return {
    url: `redis://127.0.0.1:${port}`,
    kill: () => daemon.end(),
    start: async () => {
      daemon = await launch()
    },
    pause: () => {
      daemon.child.kill('SIGSTOP')
    },
    resume: () => {
      daemon.child.kill('SIGCONT')
    },
    close: async () => {
      await daemon.end()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
