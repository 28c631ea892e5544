import { describe, expect, it } from '@jest/globals'
import { EngineFault, type EngineOutput } from '../model/document.js'
import { readEmail } from './email.js'

const read = (message: string, decodedBytes = 1_000_000): EngineOutput =>
  readEmail(
    { bytes: Buffer.from(message.replaceAll('\n', '\r\n'), 'latin1'), contentType: '', name: '', baseUrl: '' },
    { pages: 1, decodedBytes },
  )
const markdownOf = (message: string): string => read(message).markdown
const multipart = (type: string, ...parts: string[]): string =>
  `Content-Type: multipart/${type}; boundary="b${parts.length}"\n\n${parts.map((part) => `--b${parts.length}\n${part}\n`).join('')}--b${parts.length}--\n`

describe('an e-mail message', () => {
  it('has its subject, who wrote it to whom and when, and its text', () => {
    const { markdown, metadata, kind } = read(
      'From: Ann <ann@example.org>\nTo: Bob <bob@example.org>,\n Eve <eve@example.org>\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\n =?utf-8?B?IQ==?=\nDate: Mon, 6 May 2024 10:00:00 +0200\nX-Other: no\n\nHello,\nBob.\n\n> You wrote\n>> I wrote\n\n# no heading\n',
    )
    expect(markdown).toBe(
      '# Grüße!\n\n**From:** Ann \\<ann@example.org>\\\n**To:** Bob \\<bob@example.org>, Eve \\<eve@example.org>\\\n**Date:** Mon, 6 May 2024 10:00:00 +0200\n\nHello,\\\nBob.\n\n> You wrote\n>\n> > I wrote\n\n\\# no heading\n',
    )
    expect({ kind, title: metadata.title, warnings: metadata.warnings }).toEqual({
      kind: 'email',
      title: 'Grüße!',
      warnings: [],
    })
  })

  it.each([
    [
      'quoted-printable',
      'Content-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\nGr=FC=\n=DFe =3D',
      'Grüße =\n',
    ],
    [
      'base64',
      'Content-Type: text/plain; charset="utf-8"\nContent-Transfer-Encoding: base64\n\nR3LD\nvMOfZQ==',
      'Grüße\n',
    ],
    ['no encoding', 'Content-Type: text/plain; charset=windows-1251\n\n\xcf\xf0', 'Пр\n'],
    ['flowed lines', 'Content-Type: text/plain; format=flowed\n\none \ntwo\nthree', 'one two\\\nthree\n'],
    [
      'HTML',
      'Content-Type: text/html\n\n<html><head><title>t</title></head><body><h2>Tea</h2><script>x</script><ul><li>a</ul></body></html>',
      '## Tea\n\n- a\n',
    ],
  ])('is decoded from %s', (_name, message, expected) => {
    expect(markdownOf(message)).toBe(expected)
  })

  it('is read in its richest form that has text', () => {
    const plain = 'Content-Type: text/plain\n\nplain'
    expect(markdownOf(multipart('alternative', plain, 'Content-Type: text/html\n\n<p><b>rich</b></p>'))).toBe(
      '**rich**\n',
    )
    expect(markdownOf(multipart('alternative', plain, 'Content-Type: text/calendar\n\nBEGIN'))).toBe('plain\n')
  })

  it('names its attachments, and reads messages within', () => {
    const inner = 'Content-Type: message/rfc822\n\nSubject: Inner\n\nwords'
    const { markdown, metadata } = read(
      `Subject: Outer\n${multipart(
        'mixed',
        'Content-Type: text/plain\n\ntext',
        "Content-Type: application/pdf; name=x\nContent-Disposition: attachment; filename*0*=utf-8''B%C3%BC; filename*1=cher.pdf\nContent-Transfer-Encoding: base64\n\nJVBERg==",
        'Content-Type: image/png\nContent-ID: <a>\n\nx',
        inner,
      )}`,
    )
    expect(markdown).toBe('# Outer\n\ntext\n\n## Inner\n\nwords\n\n**Attachments:** Bücher.pdf\n')
    expect(metadata.warnings).toEqual([
      { code: 'attachments_unread', message: 'One attachment is not read: Bücher.pdf.' },
    ])
  })
})

describe('a hostile e-mail message', () => {
  it('with parts without end is cut, and says so', () => {
    const { metadata } = read(multipart('mixed', ...Array.from({ length: 3000 }, () => '\nx')))
    expect(metadata.warnings.map(({ code }) => code)).toEqual(['content_cut'])
    const nested = `${'Content-Type: multipart/mixed; boundary=b\n\n--b\n'.repeat(5000)}\nx`
    expect(read(nested).metadata.warnings.map(({ code }) => code)).toEqual(['content_cut'])
  })

  it('that decodes to too much is refused', () => {
    expect(() => read(`Subject: x\n\n${'x'.repeat(2000)}`, 1000)).toThrow(EngineFault)
  })

  it.each(['=?', '=?utf-8?q?', ';a="', '>', '\n ', 'From: '])('of nothing but %j is read', (piece) => {
    expect(
      read(
        `Subject: ${piece.repeat(20_000)}\nContent-Type: text/plain${piece.repeat(20_000)}\n\n${piece.repeat(20_000)}`,
      ).kind,
    ).toBe('email')
  })
})
