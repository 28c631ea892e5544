/** `beta`: the specification's event names and session keys. `ga`: those that upstream P1 speaks today. */
export type RealtimeDialect = 'ga' | 'beta'
