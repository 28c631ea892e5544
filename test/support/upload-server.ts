import { readdirSync, readlinkSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { GatewayError } from '../../src/core/gateway-error.js'
import { type MultipartLimits, type MultipartUpload, receiveMultipart } from '../../src/server/multipart.js'

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
