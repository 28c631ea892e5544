import type { RecordedRequest } from './recorded-request.js'

/** Requests remembered; older ones are forgotten. */
const REMEMBERED_REQUESTS = 1000
/** Memory for remembered bodies unless all are kept; beyond it the oldest bodies are dropped. */
const REMEMBERED_BODY_BYTES = 32 * 1024 * 1024

/** The requests a simulator remembers, newest last: 1,000 of them, and 32 MiB of bodies unless all bodies are kept. */
export class RequestMemory {
  #requests: RecordedRequest[] = []
  /** Requests whose bodies count towards the memory bound, oldest first. */
  readonly #holding: RecordedRequest[] = []
  #heldBytes = 0

  constructor(private readonly keepsAllBodies: boolean) {}

  get requests(): readonly RecordedRequest[] {
    return this.#requests
  }

  /** Called when the head of a request has arrived. */
  add(request: RecordedRequest): void {
    this.#requests.push(request)
    if (this.#requests.length > REMEMBERED_REQUESTS) this.#requests.shift()
  }

  /** Called when the body of a request was read to its end: only now is it known how much the record holds. */
  bodyReceived(request: RecordedRequest): void {
    if (this.keepsAllBodies) return
    this.#holding.push(request)
    this.#heldBytes += request.heldBytes
    while (this.#heldBytes > REMEMBERED_BODY_BYTES) {
      const oldest = this.#holding.shift()
      if (oldest === undefined) return
      this.#heldBytes -= oldest.heldBytes
      oldest.forgetBody()
    }
    if (this.#holding.length > REMEMBERED_REQUESTS) this.#heldBytes -= this.#holding.shift()?.heldBytes ?? 0
  }

  clear(): void {
    this.#requests = []
  }
}
