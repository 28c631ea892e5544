import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { BytesInFlight, type Reservation } from './bytes-in-flight.js'

describe('The bytes in flight', () => {
  it('are granted up to the maximum and not a byte beyond', () => {
    const inFlight = new BytesInFlight()
    expect(inFlight.reserve(60, 100)).toBeDefined()
    expect(inFlight.reserve(41, 100)).toBeUndefined()
    expect(inFlight.reserve(40, 100)).toBeDefined()
    expect(inFlight.bytes).toBe(100)
    expect(inFlight.reserve(0, 100)).toBeDefined()
  })

  it('are granted to a request that is alone, whatever it asks for', () => {
    const inFlight = new BytesInFlight()
    const alone = inFlight.reserve(500, 100)
    expect(alone).toBeDefined()
    expect(inFlight.reserve(1, 100)).toBeUndefined()
    alone?.release()
    expect(inFlight.reserve(1, 100)).toBeDefined()
  })

  it('are given back once, however often that is said, and a reservation never grows', () => {
    const inFlight = new BytesInFlight()
    const other = inFlight.reserve(10, 100)
    const reservation = inFlight.reserve(50, 100)
    reservation?.shrinkTo(70)
    expect(inFlight.bytes).toBe(60)
    reservation?.shrinkTo(20)
    expect(inFlight.bytes).toBe(30)
    reservation?.release()
    reservation?.release()
    reservation?.shrinkTo(5)
    expect(inFlight.bytes).toBe(10)
    other?.release()
    expect(inFlight.bytes).toBe(0)
  })

  it('are what a plain count of them is, whatever happens in between', () => {
    const step = fc.tuple(fc.constantFrom('reserve', 'shrink', 'release'), fc.nat(120), fc.nat(9))
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const inFlight = new BytesInFlight()
        const held: { readonly reservation: Reservation; bytes: number }[] = []
        const count = (): number => held.reduce((sum, { bytes }) => sum + bytes, 0)
        for (const [what, bytes, which] of steps) {
          const entry = held[which]
          if (what === 'reserve') {
            const mayBe = count() === 0 || count() + bytes <= 100
            const reservation = inFlight.reserve(bytes, 100)
            expect(reservation !== undefined).toBe(mayBe)
            if (reservation !== undefined) held.push({ reservation, bytes })
          } else if (entry !== undefined) {
            const kept = what === 'release' ? 0 : Math.min(bytes, entry.bytes)
            if (what === 'release') entry.reservation.release()
            else entry.reservation.shrinkTo(bytes)
            entry.bytes = kept
          }
          expect(inFlight.bytes).toBe(count())
        }
      }),
    )
  })
})
