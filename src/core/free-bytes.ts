import { MessageChannel } from 'node:worker_threads'

/** What is sent to a closed port arrives nowhere. */
const { port1: closedPort } = new MessageChannel()
closedPort.close()

/**
 * Gives memory back at once that nobody reads any more: the buffer has no bytes from here on. The collector would find it
 * as well, but counts such memory as grown, and each 30 MB or so of it make V8 walk through the whole heap (docs/decisions/0044).
 * Bytes that share their memory with others are left to the collector.
 */
export function freeBytes(bytes: Buffer): void {
  const { buffer } = bytes
  if (bytes.length === 0 || bytes.length !== buffer.byteLength || !(buffer instanceof ArrayBuffer)) return
  // Transferring takes the memory from its owner, whatever becomes of the message.
  closedPort.postMessage(undefined, [buffer])
}
