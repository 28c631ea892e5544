import { Injectable } from '@nestjs/common'
import { Registry } from 'prom-client'

/** Every metric of this process; whoever measures something registers it here, under a name that begins `gateway_`. */
@Injectable()
export class Metrics {
  readonly registry = new Registry()
}
