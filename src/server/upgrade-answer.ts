import type { IncomingMessage } from 'node:http'
import type { PendingUpgrade } from './upgrade.js'

/** What a controller hands back to say yes to an upgrade. */
export class UpgradeAnswer {
  constructor(
    /** Given with the open socket to whoever holds the conversation. */
    readonly handover: object,
    /** Called instead when there is no conversation to be held any more: lets go of all that was prepared. */
    readonly abandon: () => void,
  ) {}
}

/** Knows the paths at which upgrades are served, and takes over the sockets of those that were said yes to. */
export interface UpgradeTaker {
  /** Asked for each request that offers to leave HTTP; all others stay plain requests, whatever they offered. */
  wants(request: IncomingMessage): boolean
  take(upgrade: PendingUpgrade, answer: UpgradeAnswer): void
}
