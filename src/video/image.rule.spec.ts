import { describe, expect, it } from '@jest/globals'
import { jpegHeader, pngHeader, pngText } from '../../test/support/images.js'
import { image, MAXIMUM_IMAGE_BYTES } from './image.rule.js'

const PATH = 'image_list[2].image'

const verdict = (value: unknown): string | undefined => image(value, PATH)?.message
const ofBytes = (bytes: Buffer): string | undefined => verdict(bytes.toString('base64'))

/** A good image, filled up to a size. */
const padded = (bytes: number): Buffer => {
  const whole = Buffer.alloc(bytes)
  pngHeader(300, 300).copy(whole)
  return whole
}

describe('An image in Base64', () => {
  it('is accepted as PNG and as JPEG', () => {
    expect(ofBytes(pngHeader(300, 300))).toBeUndefined()
    expect(ofBytes(jpegHeader(300, 300))).toBeUndefined()
  })

  it.each([0, 1, 2])('may have 10 MB and not a byte more, whatever its padding (%i bytes off)', (less) => {
    expect(ofBytes(padded(MAXIMUM_IMAGE_BYTES - less))).toBeUndefined()
    expect(ofBytes(padded(MAXIMUM_IMAGE_BYTES + 1 + less))).toBe(
      `Invalid '${PATH}': the image is larger than 10485760 bytes.`,
    )
  })

  it.each([
    [300, 300],
    [300, 750],
    [750, 300],
    [301, 752],
    [30_000, 30_000],
  ])('may be %i x %i pixels large', (width, height) => {
    expect(ofBytes(pngHeader(width, height))).toBeUndefined()
    expect(ofBytes(jpegHeader(width, height))).toBeUndefined()
  })

  it.each([
    [299, 300, 'pixels'],
    [300, 299, 'pixels'],
    [1, 1, 'pixels'],
    [300, 751, 'ratio'],
    [751, 300, 'ratio'],
    [301, 753, 'ratio'],
    [30_000, 11_999, 'ratio'],
  ])('may not be %i x %i pixels large: %s', (width, height, what) => {
    expect(ofBytes(pngHeader(width, height))).toContain(what)
    expect(ofBytes(jpegHeader(width, height))).toContain(`${width} x ${height}`)
  })

  it.each(['data:image/png;base64,', 'DATA:image/png;base64,', 'data:,'])('is refused behind %s', (prefix) => {
    expect(verdict(prefix + pngText())).toBe(`Invalid '${PATH}': expected raw Base64 without a data: prefix.`)
  })

  it.each([
    ['in the alphabet of URLs', pngText().replaceAll('+', '-').replaceAll('/', '_').replace(/^./, '-')],
    ['with a line break', `${pngText().slice(0, 40)}\n${pngText().slice(40)}`],
    ['with half a group', pngText().slice(0, -1)],
    ['as another address', 'ftp://example.com/image.png'],
    ['as a path', '/images/image.png'],
    ['with blanks around it', ` ${pngText()} `],
  ])('is refused %s', (_case, value) => {
    expect(verdict(value)).toBe(`Invalid '${PATH}': expected an http or https URL or raw Base64.`)
  })

  it('is refused in another format, whatever it calls itself', () => {
    expect(ofBytes(Buffer.from('GIF89a, and so on'))).toBe(
      `Invalid '${PATH}': supported formats are jpg, jpeg and png.`,
    )
  })

  it('is refused with a header that is cut off or garbled', () => {
    expect(ofBytes(pngHeader(300, 300).subarray(0, 20))).toBe(`Invalid '${PATH}': the png header is broken or cut off.`)
    expect(ofBytes(jpegHeader(300, 300).subarray(0, 8))).toBe(
      `Invalid '${PATH}': the jpeg header is broken or cut off.`,
    )
  })

  it.each([undefined, null, 5, {}, '', ' \n'])('is refused as %p', (value) => {
    expect(verdict(value)).toContain(PATH)
  })
})

describe('An image at a URL', () => {
  const url = (characters: number): string => 'https://example.com/'.padEnd(characters, 'a')

  it.each(['https://example.com/a.png', 'HTTP://example.com', 'http://10.0.0.1/a?b=c#d', url(2_048)])(
    'is passed on unfetched: %s',
    (value) => {
      expect(verdict(value)).toBeUndefined()
    },
  )

  it.each([
    ['is too long', url(2_049)],
    ['has no host', 'https://'],
    ['has no such port', 'https://example.com:99999/'],
    ['holds a user', 'https://user@example.com/a.png'],
    ['holds a password', 'https://:secret@example.com/a.png'],
    ['holds a line break', 'https://example.com/a\n.png'],
    ['holds a blank', 'https://example.com/a .png'],
  ])('is refused when it %s, without repeating it', (_case, value) => {
    expect(verdict(value)).toContain(`Invalid '${PATH}'`)
    expect(verdict(value)).not.toContain('example.com')
  })
})
