import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { TEST_KEY } from './gateway.js'

export const REALTIME_PATH = '/v1/realtime?model=gpt-realtime'

/** A whole handshake; what is given is laid over it, and `undefined` leaves a header out. */
export interface UpgradeRequest {
  readonly method?: string
  readonly path?: string
  readonly version?: string
  readonly headers?: Readonly<Record<string, string | undefined>>
  /** Sent in one piece with the request, ahead of it and behind it. */
  readonly before?: Buffer
  readonly early?: Buffer
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  /** Everything behind the head. */
  readonly body: Buffer
}

const HEADERS = {
  host: 'gateway',
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  authorization: `Bearer ${TEST_KEY}`,
}

/** The bytes of a handshake. */
export function handshake(wish: UpgradeRequest = {}): Buffer {
  const { method = 'GET', path = REALTIME_PATH, version = '1.1', headers = {}, before, early } = wish
  const merged: Readonly<Record<string, string | undefined>> = { ...HEADERS, ...headers }
  const lines = Object.entries(merged).flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}`]))
  const head = [`${method} ${path} HTTP/${version}`, ...lines, '', ''].join('\r\n')
  return Buffer.concat([before ?? Buffer.alloc(0), Buffer.from(head, 'latin1'), early ?? Buffer.alloc(0)])
}

/** Sends exactly this handshake on a connection of its own; the caller destroys it. */
export async function sendUpgrade(url: string, wish: UpgradeRequest = {}): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  socket.write(handshake(wish))
  return socket
}

/** The answer once the server has closed the connection; rejects when it was cut within the body. */
export async function refusalOf(socket: Socket): Promise<HttpAnswer> {
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  await once(socket, 'end')
  socket.end()
  const answer = parse(Buffer.concat(chunks))
  if (Number(answer.headers.get('content-length')) !== answer.body.length) throw new Error('the answer was cut')
  return answer
}

/** The head of the answer as soon as it is there, with whatever came behind it. */
export async function headOf(socket: Socket): Promise<HttpAnswer> {
  const chunks: Buffer[] = []
  const collect = (chunk: Buffer): void => void chunks.push(chunk)
  socket.on('data', collect)
  while (!Buffer.concat(chunks).includes('\r\n\r\n')) await once(socket, 'data')
  socket.off('data', collect)
  return parse(Buffer.concat(chunks))
}

export const askUpgrade = async (url: string, wish: UpgradeRequest = {}): Promise<HttpAnswer> =>
  refusalOf(await sendUpgrade(url, wish))

function parse(bytes: Buffer): HttpAnswer {
  const end = bytes.indexOf('\r\n\r\n')
  const [line = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const headers = lines.map((text): [string, string] => {
    const colon = text.indexOf(':')
    return [text.slice(0, colon).toLowerCase(), text.slice(colon + 1).trim()]
  })
  return { status: Number(line.split(' ')[1]), headers: new Map(headers), body: bytes.subarray(end + 4) }
}

/** One masked text frame as a client sends it; shorter than 64 KiB. */
export function textFrame(text: string): Buffer {
  const payload = Buffer.from(text)
  const mask = Buffer.from([1, 2, 3, 4])
  const length =
    payload.length < 126
      ? Buffer.from([0x80 | payload.length])
      : Buffer.from([0xfe, payload.length >> 8, payload.length & 0xff])
  return Buffer.concat([Buffer.from([0x81]), length, mask, payload.map((byte, index) => byte ^ (mask[index % 4] ?? 0))])
}
