import { Injectable } from '@nestjs/common'
import { Alarm } from './wake-timer.js'

/** How whoever gives a task an early next poll tells the poller, which may be asleep for longer. */
@Injectable()
export class PollAlarm extends Alarm {}
