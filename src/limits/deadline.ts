/** A deadline comes in so many parts, of which a stall of this process costs one. */
const PARTS = 4
const CLEARED = -1

/**
 * How long somebody else may take. After a stall of this process its timers come before the answers that have arrived
 * meanwhile: a plain timer would blame whoever has answered long ago, at the worst of times.
 */
export class Deadline {
  private timer: NodeJS.Timeout
  private partsLeft = PARTS

  constructor(
    private readonly milliseconds: number,
    private readonly onMissed: () => void,
  ) {
    this.timer = this.nextPart()
  }

  clear(): void {
    this.partsLeft = CLEARED
    clearTimeout(this.timer)
  }

  private nextPart(): NodeJS.Timeout {
    return setTimeout(this.onPart, this.milliseconds / PARTS)
  }

  private readonly onPart = (): void => {
    this.partsLeft--
    if (this.partsLeft > 0) this.timer = this.nextPart()
    else setImmediate(this.onLastPart)
  }

  /** What has arrived is looked at first. */
  private readonly onLastPart = (): void => {
    if (this.partsLeft === 0) this.onMissed()
  }
}
