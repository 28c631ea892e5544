import { once } from 'node:events'
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { WorkerSocket } from './embedded-worker.js'

let worker: MessagePort
let socket: WorkerSocket
const onSilence = jest.fn()

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask'] })
  onSilence.mockClear()
  const { port1, port2 } = new MessageChannel()
  worker = port1
  socket = new WorkerSocket(port2, onSilence)
})

afterEach(() => {
  socket.destroy()
  jest.useRealTimers()
})

const nextMessage = async (): Promise<string> => {
  const [bytes] = (await once(worker, 'message')) as [Uint8Array]
  return Buffer.from(bytes).toString()
}

describe('WorkerSocket', () => {
  it('sends together what the driver corks together', async () => {
    socket.cork()
    socket.write('Parse')
    socket.write('Bind')
    socket.write('Sync')
    process.nextTick(() => {
      socket.uncork()
    })
    expect(await nextMessage()).toBe('ParseBindSync')
  })

  it('hands over what the worker answers, also to nothing at all', async () => {
    socket.write('a')
    worker.postMessage(new Uint8Array())
    worker.postMessage(Uint8Array.from(Buffer.from('answer')))
    const [data] = (await once(socket, 'data')) as [Buffer]
    expect(data.toString()).toBe('answer')
  })

  it('ends when the worker ends', async () => {
    const closed = once(socket, 'close')
    worker.close()
    await closed
    expect(socket.destroyed).toBe(true)
  })

  it('ends when the driver ends it', async () => {
    const closed = once(worker, 'close')
    socket.resume()
    socket.end('X')
    expect(await nextMessage()).toBe('X')
    await closed
  })

  it('complains of a worker that leaves one of two messages unanswered for a minute', async () => {
    socket.write('first')
    socket.write('second')
    await nextMessage()
    worker.postMessage(Uint8Array.from(Buffer.from('answer')))
    await once(socket, 'data')
    jest.advanceTimersByTime(59_999)
    expect(onSilence).not.toHaveBeenCalled()
    jest.advanceTimersByTime(1)
    expect(onSilence).toHaveBeenCalledTimes(1)
  })

  it('complains of nothing once all is answered', async () => {
    socket.write('only')
    await nextMessage()
    worker.postMessage(Uint8Array.from(Buffer.from('answer')))
    await once(socket, 'data')
    jest.advanceTimersByTime(600_000)
    expect(onSilence).not.toHaveBeenCalled()
  })
})
