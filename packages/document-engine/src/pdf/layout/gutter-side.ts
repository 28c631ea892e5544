import { firstCharacter, isCjk, isLowerCase } from './characters.js'
import { type Line, middleOf, type PageItem } from './layout-model.js'
import { isLeaderLine } from './leaders.js'

export const LEAST_LINES_BESIDE = 3

/** What stands on one side of a gutter, added from the top. */
export class GutterSide {
  x1 = Infinity
  x2 = -Infinity
  top = Infinity
  bottom = -Infinity
  rows = 0
  size = 10
  private inked = 0
  private characters = 0
  private lines = 0
  private lowerCaseStarts = 0
  private closeRows = 0
  private tables = 0
  private fixedPitchLines = 0
  private lastMiddle = -Infinity

  add(item: PageItem): void {
    const middle = middleOf(item)
    if (item.kind === 'line') this.addLine(item, middle)
    else this.tables += 1
    this.lastMiddle = Math.max(this.lastMiddle, middle)
    this.x1 = Math.min(this.x1, item.x1)
    this.x2 = Math.max(this.x2, item.x2)
    this.top = Math.min(this.top, item.top)
    this.bottom = Math.max(this.bottom, item.bottom)
  }

  private addLine(line: Line, middle: number): void {
    const distance = middle - this.lastMiddle
    const isLeader = isLeaderLine(line)
    if (distance > line.size * 0.5) {
      this.rows += 1
      if (distance < line.size * 1.7 || isLeader) this.closeRows += 1
    }
    this.size = line.size
    this.inked += line.x2 - line.x1
    this.characters += line.text.length
    this.lines += 1
    const first = firstCharacter(line.text)
    if (isLowerCase(first) || isCjk(first) || isLeader) this.lowerCaseStarts += 1
    if (line.isFixedPitch && !isLeader) this.fixedPitchLines += 1
  }

  /** Lines fill the side, follow closely, and often begin in the middle of a sentence. */
  isProse(): boolean {
    if (this.lines === 0) return this.tables > 0
    const isLong = this.characters / this.lines >= 12
    const isFilled = this.inked >= this.rows * (this.x2 - this.x1) * 0.52
    return isLong && isFilled && this.isClose() && this.lowerCaseStarts >= this.lines * 0.15
  }

  isTall(): boolean {
    return this.rows >= LEAST_LINES_BESIDE || this.tables > 0
  }

  isCode(): boolean {
    return this.fixedPitchLines * 2 > this.lines
  }

  isDense(): boolean {
    return this.isClose() && this.characters / Math.max(1, this.rows) >= 5 && this.lines <= this.rows * 1.5
  }

  private isClose(): boolean {
    return this.closeRows >= this.rows * 0.5
  }
}
