/** The store cannot be used as it is set up, and waiting will not help. The message tells the operator what to do. */
export class StoreUnusable extends Error {
  override readonly name = 'StoreUnusable'
}
