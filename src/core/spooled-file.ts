import { randomUUID } from 'node:crypto'
import { open, unlink, type FileHandle } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { freeBytes } from './free-bytes.js'

const KIBIBYTE = 1024
const HEAD_BYTES = 64 * KIBIBYTE
/** Each read is a call of the thread pool: smaller ones cost more, and larger ones are held for as long as the reader is slow. */
const READ_BYTES = 256 * KIBIBYTE
const INITIAL_BUFFER_BYTES = 64 * KIBIBYTE

/** What a spooled file keeps in memory at most, unless the caller sets another limit. */
export const SPOOL_MEMORY_BYTES = 1024 * KIBIBYTE

interface SpooledFileOptions {
  /** Where the temporary file is made once memory is full; default: the system's directory for temporary files. */
  readonly directory?: string
  /** Bytes kept in memory before the file is made, and the size of every write to it; default 1 MiB. */
  readonly memoryBytes?: number
}

/**
 * Bytes kept for a while, received or made: up to `memoryBytes` in memory, the rest in a temporary file that no other process
 * can open. Life: `append`… → `finish` → any number of reads → `remove`.
 */
export class SpooledFile {
  readonly #directory: string
  readonly #memoryBytes: number
  #buffer: Buffer
  #buffered = 0
  #written = 0
  #head: Buffer | undefined
  #handle: FileHandle | undefined
  /** Set only where the name could not be taken away while the file is open. */
  #path: string | undefined
  #working: Promise<void> = Promise.resolve()
  #removal: Promise<void> | undefined
  #finished = false

  constructor(options: SpooledFileOptions = {}) {
    this.#directory = options.directory ?? tmpdir()
    this.#memoryBytes = options.memoryBytes ?? SPOOL_MEMORY_BYTES
    this.#buffer = Buffer.allocUnsafeSlow(Math.min(INITIAL_BUFFER_BYTES, this.#memoryBytes))
  }

  /** Bytes received so far. */
  get size(): number {
    return this.#written + this.#buffered
  }

  /** What a finished file keeps in memory. */
  get heldBytes(): number {
    return this.#handle === undefined ? this.size : this.head.length
  }

  /** The first 64 KiB, or all when there are fewer; complete once finished. */
  get head(): Buffer {
    return this.#head ?? this.#buffer.subarray(0, Math.min(this.#buffered, HEAD_BYTES))
  }

  /** Adds bytes; resolves when the next chunk may come (that is when the disk has kept up). Rejects with the disk's own error. */
  append(chunk: Buffer): Promise<void> {
    return this.#enqueue(() => this.#store(chunk))
  }

  /** Ends the writing. Reads are allowed from here on. */
  finish(): Promise<void> {
    return this.#enqueue(async () => {
      if (this.#handle !== undefined) {
        await this.#flush(this.#handle)
        freeBytes(this.#buffer)
        this.#buffer = Buffer.alloc(0)
        this.#head = await readFully(this.#handle, 0, Buffer.allocUnsafe(Math.min(this.size, HEAD_BYTES)))
      }
      this.#finished = true
    })
  }

  /** Up to `length` bytes from `position`; fewer at the end of the file. Read from disk, they stand in `memory`, if given. */
  async read(position: number, length: number, memory?: Buffer): Promise<Buffer> {
    if (!this.#finished || this.#removal !== undefined) throw new Error('the spooled file cannot be read now')
    const end = Math.min(position + length, this.size)
    if (position >= end) return Buffer.alloc(0)
    if (this.#handle === undefined) return this.#buffer.subarray(position, end)
    return readFully(this.#handle, position, (memory ?? Buffer.allocUnsafe(end - position)).subarray(0, end - position))
  }

  /** The whole content from its start; may be called again for another attempt. */
  createReadStream(): Readable {
    return Readable.from(this.#chunks(), { objectMode: false })
  }

  /** The same in pieces, each of which is valid until the next one is asked for: they share their memory. */
  async *pieces(): AsyncGenerator<Buffer> {
    const memory = this.#handle === undefined ? undefined : Buffer.allocUnsafeSlow(READ_BYTES)
    for (let position = 0; position < this.size; position += READ_BYTES) {
      yield await this.read(position, READ_BYTES, memory)
    }
  }

  async *#chunks(): AsyncGenerator<Buffer> {
    for (let position = 0; position < this.size; position += READ_BYTES) yield await this.read(position, READ_BYTES)
  }

  /** Gives the bytes back to the system. Later reads fail; calling again does nothing. */
  remove(): Promise<void> {
    this.#removal ??= this.#release()
    return this.#removal
  }

  #enqueue(work: () => Promise<void>): Promise<void> {
    if (this.#finished || this.#removal !== undefined) {
      return Promise.reject(new Error('the spooled file takes no more bytes'))
    }
    const done = this.#working.then(work)
    // The chain only orders the work; the caller of each step sees its failure.
    this.#working = done.catch(() => undefined)
    return done
  }

  // Bytes are copied: a chunk of one byte may hold a whole network buffer alive.
  async #store(chunk: Buffer): Promise<void> {
    let offset = 0
    while (offset < chunk.length) {
      if (this.#buffered === this.#memoryBytes) await this.#writeToFile()
      this.#makeRoom(chunk.length - offset)
      const copied = chunk.copy(this.#buffer, this.#buffered, offset)
      this.#buffered += copied
      offset += copied
    }
  }

  #makeRoom(wanted: number): void {
    const needed = Math.min(this.#buffered + wanted, this.#memoryBytes)
    if (needed <= this.#buffer.length) return
    const larger = Buffer.allocUnsafeSlow(Math.min(Math.max(needed, this.#buffer.length * 2), this.#memoryBytes))
    this.#buffer.copy(larger, 0, 0, this.#buffered)
    freeBytes(this.#buffer)
    this.#buffer = larger
  }

  async #writeToFile(): Promise<void> {
    this.#handle ??= await this.#openUnnamed()
    await this.#flush(this.#handle)
  }

  async #flush(handle: FileHandle): Promise<void> {
    let offset = 0
    while (offset < this.#buffered) {
      const { bytesWritten } = await handle.write(this.#buffer, offset, this.#buffered - offset, this.#written + offset)
      offset += bytesWritten
    }
    this.#written += this.#buffered
    this.#buffered = 0
  }

  // Without a name the file vanishes with its descriptor, even when the process is killed.
  async #openUnnamed(): Promise<FileHandle> {
    const path = join(this.#directory, `gateway-upload-${randomUUID()}`)
    const handle = await open(path, 'wx+', 0o600)
    try {
      await unlink(path)
    } catch {
      this.#path = path
    }
    return handle
  }

  async #release(): Promise<void> {
    await this.#working
    const [handle, path] = [this.#handle, this.#path]
    this.#buffer = Buffer.alloc(0)
    this.#head = Buffer.alloc(0)
    // Closing waits for reads under way, so none of them can hit a descriptor that was given to another file.
    await handle?.close()
    if (path !== undefined) await unlink(path)
  }
}

/** Fills a buffer from `position` on. */
async function readFully(handle: FileHandle, position: number, buffer: Buffer): Promise<Buffer> {
  let filled = 0
  while (filled < buffer.length) {
    const { bytesRead } = await handle.read(buffer, filled, buffer.length - filled, position + filled)
    if (bytesRead === 0) throw new Error('the spooled file is shorter than what was written')
    filled += bytesRead
  }
  return buffer
}

export interface UploadedFile {
  readonly spool: SpooledFile
  /** Base name as the client gave it, made safe to log and store. */
  readonly filename: string
  /** Media type the client gave the part; a claim, not a finding. */
  readonly contentType: string
  /** The same as the client wrote it, parameters included; '' when it wrote none. */
  readonly claimedType: string
  /** How many text fields came before the file. */
  readonly fieldIndex: number
}

export interface MultipartField {
  readonly name: string
  readonly value: string
}
