/**
 * The thread that the embedded PostgreSQL runs in. Each message from the main thread is a port that stands for one connection:
 * what comes in through it is the wire protocol, and every piece of it gets one answer. `'close'` shuts PostgreSQL down.
 *
 * JavaScript, not TypeScript: a worker thread is loaded by Node itself, also when the tests run the gateway from its sources.
 */
import { fsyncSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { PGlite } from '@electric-sql/pglite'
import { NodeFS } from '@electric-sql/pglite/nodefs'

/** PostgreSQL gives up, as it must when the disk does not take what it writes: only a new start can tell what is there. */
const onAbort = () => process.exit(1)

/** Its file system ignores `fsync`; this one passes it on, so that a commit survives the loss of power, not only of the process. */
class DurableFiles extends NodeFS {
  async init(postgres, options) {
    const { emscriptenOpts } = await super.init(postgres, options)
    const addFsync = ({ NODEFS }) => {
      NODEFS.stream_ops.fsync = (stream) => NODEFS.tryFSOperation(() => fsyncSync(stream.nfd)) ?? 0
    }
    return { emscriptenOpts: { ...emscriptenOpts, onAbort, preRun: [...emscriptenOpts.preRun, addFsync] } }
  }
}

const NO_FSYNC = '-F'
/** Files of the log beyond it are removed at a checkpoint, which `embedded.ts` asks for: no process here does it by itself. */
const LOG = ['max_wal_size=64MB', 'min_wal_size=32MB']
const SETTINGS = ['fsync=on', 'wal_sync_method=fsync', 'shared_buffers=8MB', ...LOG]

const postgres = await PGlite.create({
  fs: new DurableFiles(workerData.directory),
  startParams: [
    ...PGlite.defaultStartParams.filter((parameter) => parameter !== NO_FSYNC),
    ...SETTINGS.flatMap((setting) => ['-c', setting]),
  ],
})

/** There is one session for all connections: what one of them left behind must not meet the next. */
async function resetSession() {
  if (postgres.isInTransaction()) await postgres.exec('rollback')
  await postgres.exec('discard all')
}

async function answer(messages) {
  const parts = []
  await postgres.execProtocolRawStream(messages, {
    syncToFs: false,
    // The bytes lie in PostgreSQL's own memory and are overwritten by the next.
    onRawData: (bytes) => parts.push(bytes.slice()),
  })
  return parts.length === 1 ? parts[0] : new Uint8Array(Buffer.concat(parts))
}

function serve(port) {
  const ready = resetSession()
  port.on('message', async (messages) => {
    await ready
    const bytes = await answer(messages)
    port.postMessage(bytes, [bytes.buffer])
  })
}

parentPort.on('message', async (message) => {
  if (message !== 'close') return serve(message)
  await postgres.close()
  parentPort.close()
})
parentPort.postMessage('ready')
