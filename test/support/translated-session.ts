import { isRecord } from '../../src/core/validation-rules.js'
import type { ClientDialect } from '../../src/dialects/realtime/client-dialect.js'
import { checkClientEvent, isEventRefusal } from '../../src/dialects/realtime/client-events.js'
import type { RealtimeDialect } from '../../src/dialects/realtime/dialect.js'
import { RealtimeTranslator } from '../../src/dialects/realtime/translator.js'

export type Fields = Record<string, unknown>

/** One session: what the client says goes up, what the upstream says comes down, all as objects. */
export class TranslatedSession {
  private readonly translator: RealtimeTranslator

  constructor(
    readonly client: ClientDialect,
    upstream: RealtimeDialect,
  ) {
    this.translator = new RealtimeTranslator({ client, upstream })
  }

  /** What the upstream is sent. Throws when the event is refused. */
  say(event: Fields): Fields[] {
    const judged = checkClientEvent(Buffer.from(JSON.stringify(event)), this.client.dialect)
    if (isEventRefusal(judged)) throw new Error(judged.message)
    return this.translator.toUpstream(judged).map(parsed)
  }

  /** What the client is shown. */
  hear(event: Fields): Fields[] {
    return this.translator.toClient(Buffer.from(JSON.stringify(event))).map(parsed)
  }
}

const parsed = (frame: Buffer): Fields => JSON.parse(frame.toString()) as Fields

/** A member that is an object. Throws when there is none. */
export const member = (event: Fields | undefined, name: string): Fields => {
  const value = event?.[name]
  if (!isRecord(value)) throw new Error(`no ${name}`)
  return value
}
