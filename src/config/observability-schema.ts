import { mapOf, recordOf } from './checks.js'
import { FAULTED } from './config-fault.js'
import { numberFrom, textMatching } from './scalar-schemas.js'
import { optional, type Schema, withDefault } from './schema-schema.js'
import type { ObservabilitySection } from './settings.js'
import { address, hostName } from './value-types.js'

/** RFC 9110, section 5.1. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/

const headerValues = recordOf(
  textMatching(/^[\x21-\x7e](?:[\x20-\x7e]{0,4094}[\x21-\x7e])?$/, 'must be 1 to 4096 printable ASCII characters'),
)

const headers: Schema<Readonly<Record<string, string>>> = {
  read(value, at) {
    const read = headerValues.read(value, at)
    if (read === FAULTED) return FAULTED
    if (Object.keys(read).every((name) => HEADER_NAME.test(name))) return read
    return at.fault('must hold names of headers')
  },
}

export const observability = mapOf<ObservabilitySection>({
  metricsHost: optional(hostName),
  otlpUrl: optional(address(['http', 'https'])),
  otlpHeaders: withDefault(headers, {}),
  traceSampleRatio: withDefault(numberFrom({ min: 0, max: 1 }), 1),
})
