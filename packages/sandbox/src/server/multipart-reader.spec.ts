import { createHash } from 'node:crypto'
import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import {
  multipartBoundary,
  MultipartError,
  MultipartReader,
  parseDisposition,
  type ReceivedPart,
} from './multipart-reader.js'

function read(body: Buffer, pieceBytes = body.length): readonly ReceivedPart[] {
  const reader = new MultipartReader('B')
  for (let start = 0; start < body.length; start += pieceBytes) reader.push(body.subarray(start, start + pieceBytes))
  return reader.finish()
}

function bodyOf(content: Buffer): Buffer {
  const head = '--B\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav\r\n\r\n'
  const tail = '\r\n--B\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper-1\r\n--B--\r\n'
  return Buffer.concat([Buffer.from(head), content, Buffer.from(tail)])
}

describe('the multipart reader', () => {
  it('finds the same parts for any content and any cut of the body', () => {
    // Content made of the delimiter's own bytes is the hard case.
    const nearDelimiter = fc.constantFrom('\r', '\n', '-', 'B', '\r\n--', '\r\n--A', '\r\n-', 'x')
    const content = fc.array(nearDelimiter, { maxLength: 60 }).map((pieces) => Buffer.from(pieces.join('')))
    fc.assert(
      fc.property(content, fc.integer({ min: 1, max: 40 }), (bytes, pieceBytes) => {
        fc.pre(!bytes.includes('\r\n--B'))
        const [file, model] = read(bodyOf(bytes), pieceBytes)
        expect(file).toMatchObject({ name: 'file', filename: 'a.wav', contentType: 'audio/wav', size: bytes.length })
        expect(file?.sha1).toBe(createHash('sha1').update(bytes).digest('hex'))
        expect(bodyOf(bytes).subarray(file?.offset, (file?.offset ?? 0) + bytes.length)).toEqual(bytes)
        expect(model).toMatchObject({ name: 'model', filename: undefined, value: 'whisper-1' })
      }),
    )
  })

  it.each([
    ['bare line feeds', '--B\nContent-Disposition: form-data; name="a"\n\nx\n--B--\n'],
    ['a preamble', 'hello\r\n--B\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n--B--'],
    ['no closing boundary', '--B\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n--B\r\n'],
    ['bytes behind the end', '--B\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n--B--\r\nmore'],
    ['a part without a name', '--B\r\nContent-Disposition: form-data\r\n\r\nx\r\n--B--'],
    ['a part without a disposition', '--B\r\nContent-Type: text/plain\r\n\r\nx\r\n--B--'],
    ['an empty body', ''],
  ])('refuses %s', (_name, body) => {
    expect(() => read(Buffer.from(body, 'latin1'))).toThrow(MultipartError)
  })

  it('keeps no more than 64 KiB of a file', () => {
    expect(read(bodyOf(Buffer.alloc(1024 * 1024)), 4096)[0]?.head.length).toBe(64 * 1024)
  })

  it.each([10, 65_536, 65_537, 300_000])('keeps the last 64 KiB of a file of %i bytes, however it is cut', (size) => {
    const content = Buffer.from(Uint8Array.from({ length: size }, (_, index) => 97 + (index % 23)))
    for (const pieceBytes of [97, 4096, 1_000_000])
      expect(read(bodyOf(content), pieceBytes)[0]?.tail.equals(content.subarray(-65_536))).toBe(true)
  })
})

describe('the headers of a part', () => {
  it.each([
    ['form-data; name="file"; filename="a.mp3"', 'file', 'a.mp3'],
    ["form-data; name=file; filename=a.mp3; filename*=utf-8''a.mp3", 'file', 'a.mp3'],
    ['form-data; name=file; filename=Assets\\a.mp3', 'file', 'a.mp3'],
    ['form-data; name="file"; filename="../etc/a \\"b\\".wav"', 'file', 'a "b".wav'],
    ['form-data; name="model"', 'model', undefined],
    ['form-data; name="file"; filename*=UTF-8\'\'%E4%BD%A0.wav', 'file', '你.wav'],
    ['attachment; name="file"', undefined, undefined],
  ])('%s', (value, name, filename) => {
    expect(parseDisposition(value)).toEqual({ name, filename })
  })

  it('takes quoted and bare boundaries and nothing else', () => {
    expect(multipartBoundary('multipart/form-data; boundary="a b"')).toBe('a b')
    expect(multipartBoundary('multipart/form-data; charset=utf-8; boundary=----x')).toBe('----x')
    expect(multipartBoundary('application/json; boundary=x')).toBeUndefined()
    expect(multipartBoundary('multipart/form-data')).toBeUndefined()
  })
})
