import { createLimitStore } from '../../src/limits/counter-store.js'
import { limitStoreContract } from './limit-store.contract.js'

const SILENT = { info: () => undefined, warn: () => undefined }

limitStoreContract('in one process', () => {
  const { ledger, close } = createLimitStore({ timeoutMs: 250, localShare: 0.5 }, 1, SILENT)
  return Promise.resolve({ one: ledger, other: ledger, close })
})
