import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Admission } from '../../src/overload/admission.js'
import { eventually } from './eventually.js'
import { startGateway, TEST_KEY, type TestGateway } from './gateway.js'
import { type RawAnswer, sendRaw } from './raw-http.js'
import { type RawUpstream, startRawUpstream } from './raw-upstream.js'

export const ANSWER =
  '{"id":"c","object":"chat.completion","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}'
export const CHAT = { path: '/v1/chat/completions', body: '{"model":"m","messages":[{"role":"user","content":"x"}]}' }

/** A gateway that serves one request at once. */
export const FULL = { admission: { concurrentRequests: 1 } }

/** A chat call as it goes over the wire. */
export const chatBytes = (requestId = 'storm', body: string = CHAT.body): string =>
  `POST ${CHAT.path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${TEST_KEY}\r\nx-request-id: ${requestId}\r\n` +
  `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`

/** A gateway with one upstream, whose answers can be held back: then the gateway has as much under way as was sent to it. */
export class FullGateway {
  readonly held: Socket[] = []
  private isHolding = false

  gateway!: TestGateway
  private upstream!: RawUpstream

  static async start(sections: object): Promise<FullGateway> {
    const lab = new FullGateway()
    lab.upstream = await startRawUpstream((socket) => {
      lab.serve(socket)
    })
    const channel = { id: 'only', provider: 'p1', credentials: 'k', models: ['m'] }
    const channels = [{ ...channel, baseUrl: `http://127.0.0.1:${lab.upstream.port}` }]
    lab.gateway = await startGateway({ channels, sections })
    return lab
  }

  get url(): string {
    return this.gateway.url
  }

  get admission(): Admission {
    return this.gateway.application.get(Admission)
  }

  /** From here on the upstream does not answer. */
  hold(): void {
    this.isHolding = true
  }

  /** One call that the upstream does not answer. Gives its answer, once there is one. */
  async fill(): Promise<{ readonly answered: Promise<RawAnswer> }> {
    this.hold()
    const answered = sendRaw(this.url, CHAT)
    await eventually(() => this.held.length === 1)
    return { answered }
  }

  empty(): void {
    this.isHolding = false
    for (const socket of this.held.splice(0)) answer(socket)
  }

  async close(): Promise<void> {
    await this.gateway.close()
    await this.upstream.close()
  }

  private serve(socket: Socket): void {
    if (this.isHolding) this.held.push(socket)
    else answer(socket)
  }
}

function answer(socket: Socket): void {
  socket.write(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${ANSWER.length}\r\n\r\n${ANSWER}`)
}

/** A kept-alive connection, on which one request follows the other. */
export class KeptAliveClient {
  readonly socket: Socket

  constructor(url: string) {
    this.socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => undefined)
  }

  /** The answer's status, its head and its body, which comes with its head. */
  async ask(bytes = chatBytes()): Promise<{ readonly status: number; readonly head: string; readonly body: string }> {
    this.socket.write(bytes)
    const [chunk] = (await once(this.socket, 'data')) as [Buffer]
    const [head = '', body = ''] = chunk.toString().split('\r\n\r\n')
    return { status: Number(head.slice(9, 12)), head, body }
  }
}
