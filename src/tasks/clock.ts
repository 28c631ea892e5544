import { Injectable } from '@nestjs/common'

/** The time of day; also the injection token, so that tests can let days pass. */
export abstract class Clock {
  /** Unix milliseconds. */
  abstract nowMs(): number
}

@Injectable()
export class SystemClock extends Clock {
  nowMs(): number {
    return Date.now()
  }
}
