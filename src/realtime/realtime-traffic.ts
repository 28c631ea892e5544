/** What has passed through the sessions of this process: plain numbers, as every message is counted. */
export class RealtimeTraffic {
  clientEvents = 0
  clientBytes = 0
  upstreamEvents = 0
  upstreamBytes = 0
}
