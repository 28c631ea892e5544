/** A rest that can be ended early. A ring while nobody rests is kept and ends the next rest at once. */
export class Alarm {
  private hasRung = false
  private endRest: (() => void) | undefined

  ring(): void {
    this.hasRung = true
    this.endRest?.()
  }

  async rest(limitMs: number): Promise<void> {
    if (!this.hasRung) {
      let timer: NodeJS.Timeout | undefined
      await new Promise<void>((resolve) => {
        this.endRest = resolve
        timer = setTimeout(resolve, limitMs)
      })
      clearTimeout(timer)
      this.endRest = undefined
    }
    this.hasRung = false
  }
}
