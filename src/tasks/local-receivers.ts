import { Inject, Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { type Environment, environmentConfig } from '../config/environment.js'
import { isLoopbackAddress } from '../upstream/ssrf-guard.js'

/**
 * Whether callbacks may go to this machine itself, at any port but those of other protocols: in a sandbox that only this
 * machine can call. Its key is known to the world, so that anyone who reaches it could send to what listens here.
 */
@Injectable()
export class LocalReceivers {
  constructor(
    private readonly store: ConfigStore,
    @Inject(environmentConfig.KEY) private readonly environment: Pick<Environment, 'inSandbox'>,
  ) {}

  get areAllowed(): boolean {
    const { host } = this.store.current.server
    return this.environment.inSandbox && (host === 'localhost' || isLoopbackAddress(host))
  }
}
