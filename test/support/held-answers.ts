import type { ServerResponse } from 'node:http'

/** Answers that a server does not give until it is told to. */
export class HeldAnswers {
  readonly #responses: ServerResponse[] = []

  readonly hold = (response: ServerResponse): void => {
    this.#responses.push(response)
  }

  /** Answers all that are held with 204. */
  releaseAll(): void {
    for (const response of this.#responses.splice(0)) take(response)
  }
}

/** Answers with 204, at once. */
export const take = (response: ServerResponse): unknown => response.writeHead(204).end()
