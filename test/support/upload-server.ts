import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll } from '@jest/globals'
import { GatewayError } from '../../src/core/errors.js'
import { type MultipartLimits, type MultipartUpload, receiveMultipart } from '../../src/server/multipart.js'
import type { RawRequest } from './gateway.js'

/** How one upload ended: what was received with the file's bytes read back, or the refusal. */
export interface UploadOutcome {
  readonly fields: readonly (readonly [name: string, value: string])[]
  readonly file?: { filename: string; contentType: string; claimedType: string; fieldIndex: number; bytes: Buffer }
  readonly error?: GatewayError
  /** Bytes of the request read from its socket when the outcome was known. */
  readonly readBytes: number
}

export interface UploadServer {
  readonly port: number
  readonly directory: string
  /** The outcome of the next upload; call before sending. */
  next(): Promise<UploadOutcome>
  /** Sends a raw request in the given pieces; the socket stays open until the answer came. */
  send(pieces: readonly Buffer[], end?: boolean): Socket
  /** Spool files that still hold bytes: named ones, and (on Linux) open descriptors without a name. */
  leftovers(): string[]
  close(): Promise<void>
}

const defaults: MultipartLimits = { bodyBytes: 28_311_552, fileBytes: 26_214_400, bodyTimeoutMs: 60_000 }

/** A real HTTP server that receives uploads with `receiveMultipart`, reads the file back and removes the upload. */
export async function startUploadServer(limits: Partial<MultipartLimits> = {}): Promise<UploadServer> {
  const directory = await mkdtemp(join(tmpdir(), 'upload-spec-'))
  const waiting: ((outcome: UploadOutcome) => void)[] = []
  const sockets = new Set<Socket>()
  const server = createServer((request, response) => {
    const startBytes = request.socket.bytesRead
    const readBytes = (): number => request.socket.bytesRead - startBytes
    receiveMultipart(request, { ...defaults, spoolDirectory: directory, ...limits })
      .then((upload) => describeUpload(upload, readBytes()))
      .catch((error: unknown) => ({ fields: [], error: asExpected(error), readBytes: readBytes() }))
      .then((outcome) => {
        response.writeHead(200, { connection: 'close' }).end()
        waiting.shift()?.(outcome)
      })
      .catch(() => undefined)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    directory,
    next: () => new Promise((resolve) => waiting.push(resolve)),
    send: (pieces, end = false) => {
      const socket = connect(port, '127.0.0.1').on('error', () => undefined)
      sockets.add(socket.resume().setNoDelay())
      for (const piece of pieces) socket.write(piece)
      if (end) socket.end()
      return socket
    },
    leftovers: () => [...readdirSync(directory), ...openDescriptors(directory)],
    close: async () => {
      for (const socket of sockets) socket.destroy()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await rm(directory, { recursive: true, force: true })
    },
  }
}

async function describeUpload(upload: MultipartUpload, readBytes: number): Promise<UploadOutcome> {
  const fields = upload.fields.map(({ name, value }) => [name, value] as const)
  const { file } = upload
  try {
    if (file === undefined) return { fields, readBytes }
    const chunks: Buffer[] = []
    for await (const chunk of file.spool.createReadStream() as AsyncIterable<Buffer>) chunks.push(chunk)
    const { filename, contentType, claimedType, fieldIndex } = file
    return { fields, file: { filename, contentType, claimedType, fieldIndex, bytes: Buffer.concat(chunks) }, readBytes }
  } finally {
    await upload.remove()
  }
}

function asExpected(error: unknown): GatewayError {
  return error instanceof GatewayError ? error : new GatewayError('internal', `not a GatewayError: ${String(error)}`)
}

function openDescriptors(directory: string): string[] {
  if (process.platform !== 'linux') return []
  return readdirSync('/proc/self/fd').flatMap((descriptor) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${descriptor}`)
      return target.startsWith(directory) ? [target] : []
    } catch {
      return []
    }
  })
}

/** The bytes of a request with a known length. */
export function requestBytes(body: Buffer, headers: Readonly<Record<string, string>>): Buffer {
  const lines = Object.entries({ host: 'localhost', 'content-length': String(body.length), ...headers })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return Buffer.concat([Buffer.from(`POST / HTTP/1.1\r\n${head}\r\n`), body])
}

export interface RawPart {
  /** Header lines as they stand on the wire. */
  readonly head: string
  readonly content: string | Buffer
}

export const fieldPart = (name: string, value: string): RawPart => ({
  head: `Content-Disposition: form-data; name="${name}"`,
  content: value,
})

export const filePart = (content: string | Buffer, filename = 'a.wav', name = 'file'): RawPart => ({
  head: `Content-Disposition: form-data; name="${name}"; filename="${filename}"\r\nContent-Type: audio/wav`,
  content,
})

export const BOUNDARY = '----spec-boundary'
export const MULTIPART = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` }

/** A multipart body with the spec's boundary. */
export function multipartBytes(parts: readonly RawPart[]): Buffer {
  const pieces = parts.flatMap(({ head, content }) => [
    Buffer.from(`--${BOUNDARY}\r\n${head}\r\n\r\n`),
    Buffer.from(content),
    Buffer.from('\r\n'),
  ])
  return Buffer.concat([...pieces, Buffer.from(`--${BOUNDARY}--\r\n`)])
}

export const TRANSCRIPTIONS = '/v1/audio/transcriptions'
export const TRANSLATIONS = '/v1/audio/translations'

/** A short recording of the named kind. */
export const sample = (name: string): Buffer =>
  readFileSync(new URL(`../../src/audio/fixtures/${name}`, import.meta.url))

const WAV_HEADER_BYTES = 44
/** 16 kHz, 16 bit, mono. */
export const WAV_BYTES_PER_SECOND = 32_000

/** A WAV file of exactly this many bytes, header included; no two kilobytes of it are alike. */
export function wavOf(bytes: number): Buffer {
  const wav = Buffer.alloc(bytes)
  wav.write('RIFF\0\0\0\0WAVEfmt ', 'latin1')
  wav.writeUInt32LE(bytes - 8, 4)
  wav.writeUInt32LE(16, 16)
  wav.writeUInt16LE(1, 20)
  wav.writeUInt16LE(1, 22)
  wav.writeUInt32LE(16_000, 24)
  wav.writeUInt32LE(WAV_BYTES_PER_SECOND, 28)
  wav.writeUInt16LE(2, 32)
  wav.writeUInt16LE(16, 34)
  wav.write('data', 36)
  wav.writeUInt32LE(bytes - WAV_HEADER_BYTES, 40)
  for (let at = WAV_HEADER_BYTES; at + 4 <= bytes; at += 1024) wav.writeUInt32LE(at, at)
  return wav
}

export const wavOfSeconds = (seconds: number): Buffer => wavOf(WAV_HEADER_BYTES + seconds * WAV_BYTES_PER_SECOND)

export const sha1 = (bytes: Buffer): string => createHash('sha1').update(bytes).digest('hex')

/** A request with these parts, in this order. */
export const upload = (
  parts: readonly RawPart[],
  path = TRANSCRIPTIONS,
  headers: RawRequest['headers'] = {},
): RawRequest => ({ path, headers: { ...MULTIPART, ...headers }, body: multipartBytes(parts) })

/** Values of fields by name; a field with several values is sent once for each. */
export type FormFields = Readonly<Record<string, string | readonly string[]>>

/** The usual form: a file called `a.wav`, then these fields. */
export const form = (fields: FormFields, file = wavOfSeconds(1)): RawPart[] => [
  filePart(file),
  ...Object.entries(fields).flatMap(([name, values]) => [values].flat().map((value) => fieldPart(name, value))),
]

/** Gives a spec file a folder for its spooled files: those of other files, which run beside it, come and go in the usual one. */
export function useOwnSpoolFolder(): void {
  let folder: string | undefined
  // The runner puts the environment back after the file.
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gateway-spools-'))
    process.env['TMPDIR'] = folder
  })
  afterAll(async () => {
    if (folder !== undefined) await rm(folder, { recursive: true })
  })
}

/** What uploads have left behind: files by name and, where the system tells, open files that lost theirs. */
export function spoolsLeft(): string[] {
  const named = readdirSync(tmpdir()).filter((name) => name.startsWith('gateway-upload-'))
  return process.platform === 'linux' ? [...named, ...openSpools()] : named
}

function openSpools(): string[] {
  return readdirSync('/proc/self/fd').flatMap((descriptor) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${descriptor}`)
      return target.includes('gateway-upload-') ? [target] : []
    } catch {
      return []
    }
  })
}
