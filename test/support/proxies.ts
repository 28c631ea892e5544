import { createSign, generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { pipeline } from 'node:stream/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createServer as createTlsServer } from 'node:tls'
import { listenOnLoopback } from './loopback-server.js'

/** Stands between the gateway and an upstream and counts what the upstream has sent; passes back-pressure on. */
export interface CountingProxy {
  readonly url: string
  /** Bytes from the upstream, by connection in the order they were opened. */
  readonly sentBytes: readonly number[]
  readonly close: () => Promise<void>
}

export async function startCountingProxy(upstreamPort: number): Promise<CountingProxy> {
  const sentBytes: number[] = []
  const server = createServer((caller) => {
    const upstream = connect(upstreamPort, '127.0.0.1')
    const index = sentBytes.push(0) - 1
    upstream.on('data', (chunk: Buffer) => {
      sentBytes[index] = (sentBytes[index] ?? 0) + chunk.length
    })
    caller.pipe(upstream)
    upstream.pipe(caller)
    for (const [socket, other] of [
      [caller, upstream],
      [upstream, caller],
    ] as const) {
      socket.on('error', () => undefined)
      socket.on('close', () => other.destroy())
    }
  })
  const { port, close } = await listenOnLoopback(server)
  return { url: `http://127.0.0.1:${port}`, sentBytes, close }
}

/** Stands between the gateway and an upstream and hands on what the upstream sends in pieces of an odd length. */
export interface CuttingProxy {
  readonly url: string
  readonly close: () => Promise<void>
}

const PIECE_BYTES = 1001

export async function startCuttingProxy(upstreamPort: number): Promise<CuttingProxy> {
  const server = createServer({ noDelay: true }, (caller) => {
    const upstream = connect(upstreamPort, '127.0.0.1')
    // A connection that breaks breaks the other one.
    pipeline(caller, upstream).catch(() => undefined)
    pipeline(upstream, inPieces, caller).catch(() => undefined)
  })
  const { port, close } = await listenOnLoopback(server)
  return { url: `http://127.0.0.1:${port}`, close }
}

/** Each in a turn of its own, so that the reader does not see two of them at once. */
async function* inPieces(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of bytes) {
    for (let start = 0; start < chunk.length; start += PIECE_BYTES) {
      yield chunk.subarray(start, start + PIECE_BYTES)
      await nextTurn()
    }
  }
}

/** DER (ITU-T X.690) tags of what a certificate is made of. */
const INTEGER = 0x02
const BIT_STRING = 0x03
const OBJECT_IDENTIFIER = 0x06
const UTF8_STRING = 0x0c
const UTC_TIME = 0x17
const SEQUENCE = 0x30
const SET = 0x31

const ECDSA_WITH_SHA256 = '2a8648ce3d040302'
const COMMON_NAME = '550403'

function der(tag: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents)
  const { length } = content
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

const identifier = (hex: string): Buffer => der(OBJECT_IDENTIFIER, Buffer.from(hex, 'hex'))
const utcTime = (time: string): Buffer => der(UTC_TIME, Buffer.from(time))
const bits = (content: Buffer): Buffer => der(BIT_STRING, Buffer.from([0]), content)

/** A certificate for tests (RFC 5280, version 1), signed with its own key, so not trusted. */
export function selfSigned(name: string): { readonly key: string; readonly cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const algorithm = der(SEQUENCE, identifier(ECDSA_WITH_SHA256))
  const subject = der(SEQUENCE, der(SET, der(SEQUENCE, identifier(COMMON_NAME), der(UTF8_STRING, Buffer.from(name)))))
  const validity = der(SEQUENCE, utcTime('200101000000Z'), utcTime('491231235959Z'))
  const subjectKey = publicKey.export({ type: 'spki', format: 'der' })
  const serial = der(INTEGER, Buffer.from([1]))
  const signed = der(SEQUENCE, serial, algorithm, subject, validity, subject, subjectKey)
  const signature = createSign('sha256').update(signed).sign(privateKey)
  const certificate = der(SEQUENCE, signed, algorithm, bits(signature)).toString('base64')
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${certificate}\n-----END CERTIFICATE-----\n`,
  }
}

/** Stands before a server that may fall silent, as a machine does whose power is gone. */
export interface SilentProxy {
  readonly port: number
  /** From now on nothing gets through in either direction, and no connection is closed, not even one whose client closes it. */
  silence(): void
  close(): Promise<void>
}

export async function startSilentProxy(target: number): Promise<SilentProxy> {
  const sockets = new Set<Socket>()
  let isSilent = false
  const keep = (socket: Socket): Socket => {
    sockets.add(socket)
    return socket.on('error', () => undefined)
  }
  const server = createServer({ allowHalfOpen: true }, (client) => {
    keep(client)
    if (isSilent) return
    const upstream = keep(connect({ port: target, host: '127.0.0.1', allowHalfOpen: true }))
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      from.on('data', (bytes: Buffer) => isSilent || to.write(bytes))
      from.on('end', () => isSilent || to.end())
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    silence: () => {
      isSilent = true
    },
    close: async () => {
      const closed = once(server, 'close')
      for (const socket of sockets) socket.destroy()
      server.close()
      await closed
    },
  }
}

export interface TlsProxy {
  /** `https://127.0.0.1:<port>`; its certificate is not trusted. */
  readonly url: string
  close(): Promise<void>
}

/** Ends TLS in front of a server on this machine, as a load balancer would: for clients that insist on `wss:`. */
export async function startTlsProxy(serverUrl: string): Promise<TlsProxy> {
  const port = Number(new URL(serverUrl).port)
  const listener = createTlsServer(selfSigned('localhost'), (outer) => {
    const inner = connect(port, '127.0.0.1')
    outer.once('close', () => inner.destroy())
    inner.once('close', () => outer.destroy())
    outer.on('error', () => undefined)
    inner.on('error', () => undefined)
    outer.pipe(inner).pipe(outer)
  })
  const { port: ownPort, close } = await listenOnLoopback(listener)
  return { url: `https://127.0.0.1:${ownPort}`, close }
}

/** Stands between the gateway and an upstream, and holds the upstream's responses back on request. */
export interface HoldingProxy {
  readonly url: string
  readonly port: number
  /** From now on no byte of an answer gets through. */
  hold(): void
  /** Lets through what was kept back, and everything after it. */
  release(): void
  /** Breaks every connection off; what was kept back is lost. */
  cut(): void
  close(): Promise<void>
}

export async function startHoldingProxy(upstreamPort: number): Promise<HoldingProxy> {
  const upstreams = new Set<Socket>()
  let isHolding = false
  const server = createServer((caller) => {
    const upstream = connect(upstreamPort, '127.0.0.1')
    upstreams.add(upstream)
    caller.on('data', (chunk: Buffer) => upstream.write(chunk))
    upstream.on('data', (chunk: Buffer) => caller.write(chunk))
    if (isHolding) upstream.pause()
    for (const socket of [caller, upstream]) {
      socket.on('error', () => undefined)
      socket.on('close', () => {
        upstreams.delete(upstream)
        caller.destroy()
        upstream.destroy()
      })
    }
  })
  const { port, sockets, close } = await listenOnLoopback(server)
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    hold: () => {
      isHolding = true
      for (const upstream of upstreams) upstream.pause()
    },
    release: () => {
      isHolding = false
      for (const upstream of upstreams) upstream.resume()
    },
    cut: () => {
      for (const caller of sockets) caller.destroy()
    },
    close,
  }
}
