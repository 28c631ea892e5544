import { buffer } from 'node:stream/consumers'
import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { startUploadServer } from '../../test/support/upload-server.js'
import { SpooledFile } from '../core/spooled-file.js'
import { encodeMultipart, type MultipartPart } from './multipart-encoder.js'

async function spoolOf(content: Uint8Array): Promise<SpooledFile> {
  const spool = new SpooledFile()
  await spool.append(Buffer.from(content))
  await spool.finish()
  return spool
}

/** Names the reader refuses on purpose. */
const refusedNames = new Set([
  'file',
  'file[]',
  'model[]',
  'constructor',
  'constructor[]',
  'prototype',
  'prototype[]',
  '__proto__',
  '__proto__[]',
])

describe('encodeMultipart', () => {
  it('writes the parts in their order, with the length it announced, the same for every attempt', async () => {
    const file = await spoolOf(Buffer.from('RIFF'))
    const parts: MultipartPart[] = [
      { name: 'model', value: 'whisper-1' },
      { name: 'include[]', value: 'logprobs' },
      { name: 'file', filename: 'audio.wav', contentType: 'audio/wav', file },
      { name: 'prompt', value: '' },
    ]
    const encoded = encodeMultipart(parts)
    const boundary = encoded.contentType.replace('multipart/form-data; boundary=', '')
    const expected = [
      `--${boundary}\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper-1\r\n`,
      `--${boundary}\r\nContent-Disposition: form-data; name="include[]"\r\n\r\nlogprobs\r\n`,
      `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="audio.wav"\r\nContent-Type: audio/wav\r\n\r\nRIFF\r\n`,
      `--${boundary}\r\nContent-Disposition: form-data; name="prompt"\r\n\r\n\r\n`,
      `--${boundary}--\r\n`,
    ].join('')
    expect((await buffer(encoded.body())).toString()).toBe(expected)
    expect((await buffer(encoded.body())).toString()).toBe(expected)
    expect(encoded.contentLength).toBe(Buffer.byteLength(expected))
    await file.remove()
  })

  it('escapes quotes and line ends in names and file names', async () => {
    const file = await spoolOf(Buffer.from('x'))
    const name = 'a"b\r\nX-Injected: 1'
    const encoded = encodeMultipart([{ name, filename: name, contentType: 'audio/wav', file }])
    const text = (await buffer(encoded.body())).toString()
    expect(text).toContain('name="a%22b%0D%0AX-Injected: 1"; filename="a%22b%0D%0AX-Injected: 1"')
    expect(text).not.toContain('\r\nX-Injected')
    await file.remove()
  })

  it('refuses a content type that would break out of its header', () => {
    const file = new SpooledFile()
    expect(() => encodeMultipart([{ name: 'file', filename: 'a', contentType: 'a\r\nb: c', file }])).toThrow(TypeError)
  })

  it('is read back unchanged by a multipart server', async () => {
    const server = await startUploadServer()
    const name = fc.stringMatching(/^[a-z_ é"%]{1,20}(\[\])?$/).filter((text) => !refusedNames.has(text))
    const fields = fc.uniqueArray(fc.record({ name, value: fc.string({ unit: 'grapheme' }) }), {
      selector: (field) => field.name,
    })
    try {
      await fc.assert(
        fc.asyncProperty(fields, fc.uint8Array({ maxLength: 3000 }), fc.nat(5), async (values, content, at) => {
          const file = await spoolOf(content)
          const parts: MultipartPart[] = [...values]
          parts.splice(at, 0, { name: 'file', filename: 'audio.wav', contentType: 'audio/wav', file })
          const encoded = encodeMultipart(parts)
          const next = server.next()
          await fetch(`http://127.0.0.1:${server.port}/`, {
            method: 'POST',
            headers: { 'content-type': encoded.contentType, 'content-length': String(encoded.contentLength) },
            body: await buffer(encoded.body()),
          })
          const outcome = await next
          expect(outcome.error).toBeUndefined()
          const sent = values.map((field) => [field.name.replaceAll('"', '%22'), field.value])
          expect(outcome.fields).toEqual(sent)
          expect(outcome.file?.bytes.equals(Buffer.from(content))).toBe(true)
          expect(outcome.file?.fieldIndex).toBe(Math.min(at, values.length))
          await file.remove()
        }),
        { numRuns: 40 },
      )
    } finally {
      await server.close()
    }
  })
})
