import { describe, expect, it } from '@jest/globals'
import { EngineFault, faultBehind } from './model/document.js'

describe('What a library throws', () => {
  it('is the document’s fault, with what was thrown as its cause', () => {
    const thrown = new TypeError('no such part')
    const fault = faultBehind(thrown, 'broken', 'The file is damaged.')
    expect(fault).toBeInstanceOf(EngineFault)
    expect(fault).toMatchObject({ fault: 'broken', message: 'The file is damaged.', cause: thrown })
  })

  it.each([new RangeError('Array buffer allocation failed'), new EngineFault('too_large', 'Too many elements.')])(
    'stays what it is when it is %s',
    (thrown) => {
      expect(faultBehind(thrown, 'broken', 'The file is damaged.')).toBe(thrown)
    },
  )
})
