/** What was typed makes no sense; the message says what would. */
export class BadCommand extends Error {
  override readonly name = 'BadCommand'
}

/** Not even the command is known. */
export class UnknownCommand extends BadCommand {}
