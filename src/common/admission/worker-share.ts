import type { AdmissionSection, GatewayConfig } from '../../config/gateway-config.js'

/**
 * What one worker goes by: memory is configured for all workers together, as that of the machine is, and each has its
 * part. All else is a matter of one event loop.
 */
export function shareOfAdmission(config: Pick<GatewayConfig, 'server' | 'admission'>): AdmissionSection {
  const { admission } = config
  const workers = workersIn(config)
  if (workers === 1) return admission
  const { bytesInFlight, memoryBytes } = admission
  return {
    ...admission,
    bytesInFlight: Math.floor(bytesInFlight / workers),
    ...(memoryBytes === undefined ? {} : { memoryBytes: Math.floor(memoryBytes / workers) }),
  }
}

/** `auto` has become a number where there are several. */
export const workersIn = ({ server: { workers } }: Pick<GatewayConfig, 'server'>): number =>
  workers === 'auto' ? 1 : workers
