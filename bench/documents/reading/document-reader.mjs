import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const SCRIPT = fileURLToPath(new URL('reader.process.mjs', import.meta.url))
const HEAP_MEGABYTES = 512

/** Reads documents one after another in a child process, which is started anew when it ends or takes too long. */
export class DocumentReader {
  #enginePath
  #child
  /** Largest resident size of any of the processes, in bytes. */
  peakBytes = 0

  constructor(enginePath) {
    this.#enginePath = enginePath
  }

  async #started() {
    if (this.#child) return this.#child
    const child = fork(SCRIPT, [this.#enginePath], {
      serialization: 'advanced',
      execArgv: [`--max-old-space-size=${HEAP_MEGABYTES}`],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text) => (said = (said + text).slice(-2_000)))
    const [first] = await Promise.race([once(child, 'message'), once(child, 'exit')])
    if (first !== 'ready') throw new Error(`the engine does not start: ${said}`)
    this.#child = child
    child.once('exit', () => {
      if (this.#child === child) this.#child = undefined
    })
    return child
  }

  /**
   * @param {{bytes: Uint8Array, contentType: string, name: string, baseUrl: string}} input
   * @returns one of {output}, {fault} for what the engine refuses, {error} for what it throws, each with {ms, cpuMs}; {late:
   * true} beyond `limitMs`, {crashed: true} when the process ended.
   */
  async read(input, limitMs) {
    const child = await this.#started()
    const answer = await new Promise((resolve) => {
      const settle = (value) => {
        clearTimeout(timer)
        child.off('message', settle).off('exit', onExit)
        resolve(value)
      }
      const onExit = () => settle({ crashed: true })
      const timer = setTimeout(() => settle({ late: true }), limitMs)
      child.once('message', settle).once('exit', onExit)
      child.send(input)
    })
    if (answer.late) await this.stop()
    this.peakBytes = Math.max(this.peakBytes, answer.peakBytes ?? 0)
    return answer
  }

  async stop() {
    const child = this.#child
    this.#child = undefined
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
}
