import { startRealtimeSimulator } from '@multi-model-gateway/sandbox/realtime/realtime.simulator.js'
import { realtimeProviderContract } from './realtime-provider.contract.js'

const KEY = 'canary4f1d7c0Qz83Lw'

for (const dialect of ['ga', 'beta'] as const)
  realtimeProviderContract(`realtime by P1 (${dialect})`, {
    provider: 'p1',
    model: 'gpt-realtime',
    dialect,
    credentials: KEY,
    start: () => startRealtimeSimulator({ apiKey: KEY, dialect }),
  })
