/** Where the next line goes: down a column, then into the next column, then onto the next page. */
export class Flow {
  #document
  #style
  #columns = 1
  #column = 0
  #top

  constructor(document, style) {
    this.#document = document
    this.#style = style
    this.#addPage()
  }

  #addPage() {
    this.#document.addPage()
    this.#column = 0
    this.#top = this.#style.margins.top
    this.y = this.#top
  }

  get #bottom() {
    return this.#style.pageSize[1] - this.#style.margins.bottom
  }

  get width() {
    const { pageSize, margins, gutter } = this.#style
    const inner = pageSize[0] - margins.left - margins.right
    return (inner - gutter * (this.#columns - 1)) / this.#columns
  }

  get x() {
    return this.#style.margins.left + this.#column * (this.width + this.#style.gutter)
  }

  /** From here on in columns; what stands above on this page keeps the whole width. */
  startColumns(count) {
    this.#columns = count
    this.#top = this.y
  }

  /** Blank of `height` points, unless a column begins here. */
  skip(height) {
    if (this.y > this.#top) this.y += height
  }

  /** Makes sure that `height` points are left in this column. */
  need(height) {
    if (this.y + height <= this.#bottom) return
    if (this.#column + 1 < this.#columns) {
      this.#column += 1
      this.y = this.#top
    } else this.#addPage()
  }
}
