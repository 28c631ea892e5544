import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { form, sample, sha1, TRANSCRIPTIONS, upload, wavOfSeconds } from '../support/audio-uploads.js'
import { startP1Gateway, type P1Gateway } from '../support/p1-gateway.js'
import { sendRaw } from '../support/raw-http.js'
import { fieldPart, filePart, type RawPart } from '../support/upload-server.js'

let lab: P1Gateway

beforeAll(async () => {
  lab = await startP1Gateway()
})
afterEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

const recording = wavOfSeconds(2)

/** The parts as they reached the upstream: name and value, the file's as its digest. */
const received = (): (readonly [string, string | undefined])[] =>
  (lab.simulator.lastRequest?.parts ?? []).map(({ name, value, sha1: digest }) => [name, value ?? digest])

const send = async (parts: readonly RawPart[], path = TRANSCRIPTIONS): Promise<void> => {
  const answer = await sendRaw(lab.gateway.url, upload(parts, path))
  expect({ status: answer.status, text: answer.text }).toMatchObject({ status: 200 })
}

describe('the file', () => {
  it.each([
    ['tone.mp3', 'mp3', 'audio/mpeg'],
    ['tone.mp2', 'mpga', 'audio/mpeg'],
    ['tone.wav', 'wav', 'audio/wav'],
    ['tone.flac', 'flac', 'audio/flac'],
    ['tone-opus.ogg', 'ogg', 'audio/ogg'],
    ['tone-vorbis.ogg', 'ogg', 'audio/ogg'],
    ['tone.m4a', 'm4a', 'audio/mp4'],
    ['tone.mp4', 'mp4', 'audio/mp4'],
    ['clip.mp4', 'mp4', 'video/mp4'],
    ['tone.webm', 'webm', 'audio/webm'],
    ['tone.mpeg', 'mpeg', 'audio/mpeg'],
  ])('%s arrives whole, with a generated name that ends in .%s', async (name, extension, contentType) => {
    const bytes = sample(name)
    await sendRaw(lab.gateway.url, upload([filePart(bytes, name), fieldPart('model', 'whisper-1')]))
    expect(lab.simulator.lastRequest?.parts?.[0]).toMatchObject({
      name: 'file',
      filename: `audio.${extension}`,
      contentType,
      size: bytes.length,
      sha1: sha1(bytes),
    })
  })

  it.each([
    ['../../etc/passwd.wav', 'a path'],
    ['C:\\\\Users\\\\x\\\\secret.wav', 'a path of Windows'],
    ['a%0D%0AX-Injected: 1.wav', 'escaped line ends'],
    ['speech.mp3', 'the wrong extension'],
    ['speech', 'no extension'],
    ['Ünï 日本.wav', 'other scripts'],
  ])('called %s (%s) gets a name that shows nothing of it', async (filename) => {
    await send([filePart(recording, filename), fieldPart('model', 'whisper-1')])
    const [part] = lab.simulator.lastRequest?.parts ?? []
    expect(part?.rawDisposition).toMatch(/^form-data; name="file"; filename="audio\.wav"$/)
    expect(part?.sha1).toBe(sha1(recording))
  })

  it.each([
    'Content-Disposition: form-data; name=file; filename=a.wav',
    "Content-Disposition: form-data; name=file; filename=Assets\\a.wav; filename*=utf-8''Assets%5Ca.wav",
    'content-disposition: form-data; filename="a.wav"; name="file"\r\ncontent-type: application/octet-stream',
    'Content-Disposition: form-data; name="file"; filename*=UTF-8\'\'a%20b.wav',
  ])('is understood when its part begins with %j', async (head) => {
    await send([
      { head, content: recording },
      { head: 'Content-Disposition: form-data; name=model', content: 'whisper-1' },
      {
        head: 'Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name=language',
        content: 'en',
      },
    ])
    expect(received()).toEqual([
      ['file', sha1(recording)],
      ['model', 'whisper-1'],
      ['language', 'en'],
    ])
  })

  it('may be the smallest that upstreams read, one above the memory of the spool, and one in between', async () => {
    for (const bytes of [sample('tone.wav'), wavOfSeconds(30), wavOfSeconds(33), wavOfSeconds(200)]) {
      await send(form([['model', 'whisper-1']], bytes))
      expect(received()[0]).toEqual(['file', sha1(bytes)])
    }
  })
})
