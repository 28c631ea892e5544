import type { AdmissionSection, GatewayConfig } from '../config/settings.js'

/** Of one worker, and what its own processes that read documents may use beside it, in bytes. */
export interface WorkerAdmission extends AdmissionSection {
  readonly documentsBytes: number
}

/**
 * What one worker goes by: memory is configured for all workers together, as that of the machine is, and each has its
 * part. All else is a matter of one event loop.
 */
export function shareOfAdmission(config: Pick<GatewayConfig, 'server' | 'admission' | 'documents'>): WorkerAdmission {
  const { admission, documents } = config
  const documentsBytes = documents.processes * documents.memoryBytes
  const workers = workersIn(config)
  if (workers === 1) return { ...admission, documentsBytes }
  const { bytesInFlight, memoryBytes } = admission
  return {
    ...admission,
    documentsBytes,
    bytesInFlight: Math.floor(bytesInFlight / workers),
    ...(memoryBytes === undefined ? {} : { memoryBytes: Math.floor(memoryBytes / workers) }),
  }
}

/** `auto` has become a number where there are several. */
export const workersIn = ({ server: { workers } }: Pick<GatewayConfig, 'server'>): number =>
  workers === 'auto' ? 1 : workers
