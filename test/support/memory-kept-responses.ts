import type { GatewayError } from '../../src/core/errors.js'
import {
  type FoundResponse,
  type KeptConversation,
  type KeptItem,
  type KeptResponse,
  KeptResponses,
} from '../../src/responses/kept-responses.js'

/** Kept responses in memory, which fail as a test wants. */
export class MemoryKeptResponses extends KeptResponses {
  readonly kept: (KeptResponse & { readonly createdAtMs: number })[] = []
  /** How often the store was asked for something. */
  asked = 0
  failure: GatewayError | undefined

  override async keep(response: KeptResponse): Promise<void> {
    await this.work()
    if (this.responseOf(response.ownerId, response.id) === undefined)
      this.kept.push({ ...response, createdAtMs: Date.now() })
  }

  override async find(ownerId: string, id: string): Promise<FoundResponse | undefined> {
    await this.work()
    const found = this.responseOf(ownerId, id)
    return found && { response: found.response, output: found.output.map(({ text }) => text) }
  }

  override async inputOf(ownerId: string, id: string): Promise<readonly KeptItem[] | undefined> {
    await this.work()
    return this.responseOf(ownerId, id)?.input
  }

  override async conversation(ownerId: string, id: string, maximumBytes: number): Promise<KeptConversation> {
    await this.work()
    const items: KeptItem[] = []
    for (let next: string | undefined = id; next !== undefined;) {
      const response = this.responseOf(ownerId, next)
      if (response === undefined) return { state: 'missing', id: next }
      items.unshift(...response.input, ...response.output)
      if (bytesOf(items) > maximumBytes) return { state: 'too_large' }
      next = response.previousId
    }
    return { state: 'whole', items }
  }

  override async items(
    ownerId: string,
    ids: readonly string[],
    maximumBytes: number,
  ): Promise<ReadonlyMap<string, KeptItem> | undefined> {
    await this.work()
    const all = this.kept.filter((each) => each.ownerId === ownerId)
    const ordered = [...all.flatMap(({ input }) => input), ...all.flatMap(({ output }) => output)]
    const found = new Map(ordered.filter(({ id }) => ids.includes(id)).map((item) => [item.id, item]))
    return bytesOf([...found.values()]) > maximumBytes ? undefined : found
  }

  override async delete(ownerId: string, id: string): Promise<boolean> {
    await this.work()
    return this.remove((each) => each.ownerId === ownerId && each.id === id, 1) > 0
  }

  override async prune(beforeMs: number, limit: number): Promise<number> {
    await this.work()
    return this.remove(({ createdAtMs }) => createdAtMs < beforeMs, limit)
  }

  private responseOf(ownerId: string, id: string): KeptResponse | undefined {
    return this.kept.find((each) => each.ownerId === ownerId && each.id === id)
  }

  private remove(isGone: (response: (typeof this.kept)[number]) => boolean, limit: number): number {
    const gone = this.kept.filter(isGone).slice(0, limit)
    for (const each of gone) this.kept.splice(this.kept.indexOf(each), 1)
    return gone.length
  }

  private async work(): Promise<void> {
    await Promise.resolve()
    this.asked++
    if (this.failure !== undefined) throw this.failure
  }
}

const bytesOf = (items: readonly KeptItem[]): number =>
  items.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0)
