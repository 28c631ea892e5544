/** More keys than anybody removes while a process runs. */
const MAXIMUM_REMEMBERED = 10_000

/**
 * SHA-256 of keys, in hex, that were the gateway's own and are not any more. Their holders may still send them, and what
 * is not known may be passed on to an upstream.
 */
export class PastDigests {
  /** The longest known come first. */
  private readonly digests = new Set<string>()

  add(sha256: string): void {
    this.digests.add(sha256)
    if (this.digests.size <= MAXIMUM_REMEMBERED) return
    for (const oldest of this.digests) {
      this.digests.delete(oldest)
      return
    }
  }

  has(sha256: string): boolean {
    return this.digests.has(sha256)
  }
}
