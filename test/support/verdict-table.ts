import { expect } from '@jest/globals'
import { GatewayError } from '../../src/core/errors.js'

/**
 * What becomes of a member of a type: `translated` = the upstream is sent something else with it than without it; `meaningless` = the
 * upstream does by itself what it says, so that nothing is lost.
 */
export type Verdict = 'translated' | 'approximated' | 'dropped' | 'refused' | 'meaningless'

/** What a translator makes of a request. */
export interface Outcome {
  readonly sentText: string
  readonly verdicts: { readonly approximated: string | undefined; readonly dropped: string | undefined }
}

type Translate = (request: object) => Outcome

/** Requests with a member of a type and without it, and what is expected of it. */
export interface Probe {
  readonly without: object
  readonly with: object
  /** The caller's path of what has the verdict: this one, or one within it. */
  readonly path: string
  readonly verdict: Verdict
}

/** The verdict that a translator gives, as far as a caller can see it; or what refused the request instead. */
export function verdictOf({ without, with: request, path }: Omit<Probe, 'verdict'>, translate: Translate): string {
  const before = attempt(without, translate)
  const after = attempt(request, translate)
  if (after instanceof GatewayError) return refusalOf(after, path)
  if (before instanceof GatewayError) return 'translated'
  if (names(after.verdicts.dropped, path)) return 'dropped'
  if (names(after.verdicts.approximated, path)) return 'approximated'
  return after.sentText === before.sentText ? 'meaningless' : 'translated'
}

const refusalOf = ({ details: { param, code } }: GatewayError, path: string): string =>
  code === 'unsupported_value' && isWithin(param ?? undefined, path) ? 'refused' : `${code} of ${param}`

function attempt(request: object, translate: Translate): Outcome | GatewayError {
  try {
    return translate(request)
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
}

const isWithin = (found: string | undefined, path: string): boolean =>
  found === path || found?.startsWith(`${path}.`) === true || found?.startsWith(`${path}[`) === true

const names = (paths: string | undefined, path: string): boolean =>
  (paths ?? '').split(',').some((found) => isWithin(found, path))

/** A member's value and its verdict. */
export type Row = readonly [value: unknown, verdict: Verdict]

/** Where an object of a type stands in a request. */
export interface Place {
  readonly path: string
  readonly request: (value: unknown) => object
}

/** Probes of an object's members; `base` = those that it cannot be without, which are taken away. */
export function memberProbes(base: object, rows: Readonly<Record<string, Row>>, place: Place): Record<string, Probe> {
  const { path, request } = place
  const probes: Record<string, Probe> = {}
  for (const name of Object.keys(base)) {
    probes[name] = {
      without: request({ ...base, [name]: undefined }),
      with: request(base),
      path,
      verdict: 'translated',
    }
  }
  for (const [name, [value, verdict]] of Object.entries(rows)) {
    const memberPath = path === '' ? name : `${path}.${name}`
    probes[name] = { without: request(base), with: request({ ...base, [name]: value }), path: memberPath, verdict }
  }
  return probes
}

/** Probes of a union's alternatives, each against a request without any. */
export function alternativeProbes(rows: Readonly<Record<string, Row>>, place: Place): Record<string, Probe> {
  const { path, request } = place
  return Object.fromEntries(
    Object.entries(rows).map(([name, [value, verdict]]) => [
      name,
      { without: request(undefined), with: request(value), path, verdict },
    ]),
  )
}

/** Every name that the SDK has is probed, and no other; each gets the verdict that is written down. */
export function expectVerdicts(
  names: readonly string[],
  probes: Readonly<Record<string, Probe>>,
  translate: Translate,
): void {
  expect(Object.keys(probes).toSorted()).toEqual(names.toSorted())
  const expected = Object.entries(probes).map(([name, { verdict }]) => [name, verdict])
  const given = Object.entries(probes).map(([name, probe]) => [name, verdictOf(probe, translate)])
  expect(Object.fromEntries(given)).toEqual(Object.fromEntries(expected))
}
