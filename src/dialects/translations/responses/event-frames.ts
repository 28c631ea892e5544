/** Frames of a response's event stream: numbered from 0, without gaps. */
export class EventFrames {
  private sequenceNumber = 0

  /** `members`: those of the event beside its type and number, as JSON text. */
  frame(type: string, members: string): string {
    return `event: ${type}\ndata: {"type":"${type}","sequence_number":${this.sequenceNumber++},${members}}\n\n`
  }
}
