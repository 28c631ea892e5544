import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { presentationFile, wordFile, workbookFile, zipOf } from '../../../test/support/office-files.js'
import { documentKind } from './document-kind.js'
import { EngineFault } from './model/document.js'

const input = (content: string | Uint8Array, contentType = '', name = ''): Parameters<typeof documentKind>[0] => ({
  bytes: typeof content === 'string' ? Buffer.from(content, 'latin1') : content,
  contentType,
  name,
  baseUrl: '',
})

/** What is said when it is not read. */
function refusal(content: string | Uint8Array, contentType = '', name = ''): string {
  try {
    return documentKind(input(content, contentType, name))
  } catch (error) {
    if (!(error instanceof EngineFault)) throw error
    return `${error.fault}: ${error.message}`
  }
}

const oleFile = (stream: string): Uint8Array =>
  Buffer.concat([
    Buffer.from([0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1]),
    Buffer.alloc(512),
    Buffer.from(stream, 'utf16le'),
    Buffer.alloc(64),
  ])

/** Marked as binary, as every writer does it. */
const PDF_BEGINNING = '%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj <<>> endobj'

describe('the kind of a document', () => {
  it.each([
    ['a PDF', '%PDF-1.7\n', 'pdf'],
    ['a PDF behind blanks', ' \r\n\t%PDF-1.4\n', 'pdf'],
    ['a PDF behind what a broken server sent first', `\r\nX: y\r\n\r\n${PDF_BEGINNING}`, 'pdf'],
    ['a PDF whose header stands just within reach', `x${' '.repeat(1018)}${PDF_BEGINNING}`, 'pdf'],
    ['a text with a PDF header out of reach', `x${' '.repeat(1019)}%PDF-1.4 1 0 obj <<>> endobj`, 'text'],
    ['a text that explains what a PDF is made of', 'It begins with %PDF-1.4; objects end with endobj.', 'text'],
    ['such a text in another script', Buffer.from('Он начинается с %PDF-1.4, endobj'), 'text'],
    ['a text that only speaks of a PDF header', '{"magic": "%PDF-", "size": 5}', 'text'],
    ['a page', '<!DOCTYPE html><title>x</title>', 'html'],
    [
      'a page behind blanks, comments and a declaration',
      ' \n<?xml version="1.0"?>\n<!-- a --><!-- b -->\n<html>',
      'html',
    ],
    ['a page behind a byte order mark', '\xef\xbb\xbf<html>', 'html'],
    ['a piece of HTML', '<div>x</div>', 'html'],
    ['an XML document of its own', '<?xml version="1.0"?><rss></rss>', 'text'],
    ['an open comment', '<!-- never closed', 'text'],
    ['plain words', 'Hello, world', 'text'],
    ['words in latin-1', 'Gr\xfc\xdfe', 'text'],
    ['two letters that begin a program', 'MZ is a file format. BM too.', 'text'],
  ])('is known by the bytes of %s', (_name, content, kind) => {
    expect(documentKind(input(content))).toBe(kind)
  })

  it('is known of a page in UTF-16', () => {
    const page = Buffer.from('<!doctype html><p>x</p>', 'utf16le')
    expect(documentKind(input(page))).toBe('html')
    expect(documentKind(input(Buffer.concat([Buffer.from([0xff, 0xfe]), page])))).toBe('html')
  })

  it('is known of office files whatever they are called', () => {
    expect(documentKind(input(wordFile(''), 'application/pdf', 'x.xlsx'))).toBe('docx')
    expect(documentKind(input(workbookFile([]), 'application/zip', 'x.zip'))).toBe('xlsx')
    expect(documentKind(input(presentationFile([]), 'text/plain', 'x'))).toBe('pptx')
  })

  it.each([
    ['application/epub+zip', 'epub'],
    ['application/vnd.oasis.opendocument.text', 'odt'],
    ['application/vnd.oasis.opendocument.text-template\n', 'odt'],
    ['application/vnd.oasis.opendocument.spreadsheet', 'ods'],
    ['application/vnd.oasis.opendocument.presentation', 'odp'],
  ])('is known of packages by their type %s', (type, kind) => {
    expect(documentKind(input(zipOf({ mimetype: type }), 'application/zip', 'x.zip'))).toBe(kind)
  })

  it.each([
    ['a book without its type', zipOf({ 'META-INF/container.xml': '' }), '', 'epub'],
    ['rich text', '{\\rtf1\\ansi x}', '', 'rtf'],
    ['a notebook', '{ "cells": [{"cell_type": "code"}], "nbformat": 4}', 'x.json', 'notebook'],
    ['other JSON', '{"a": "nbformat, cell_type"}', 'x.json', 'text'],
    ['a message', 'Received: x\r\n by y\r\nFrom: a@b.c\r\n\r\nHello', 'x.txt', 'email'],
    ['a message of a mailbox', 'From a@b.c Mon\nFrom: a@b.c\nMessage-ID: <x>\n\nHello', '', 'email'],
    ['a message by its name', 'Subject: x\n\nHello', 'x.eml', 'email'],
    ['a memo', 'From: Ann\nTo: Bob\nSubject: Tea\n\nHello', 'x.txt', 'text'],
    ['a text that speaks of fields', 'From: Ann\nMessage-ID: x\nand more words\n\nHello', 'x.txt', 'text'],
  ])('is known of %s', (_name, content, name, kind) => {
    expect(documentKind(input(content, '', name))).toBe(kind)
  })

  it.each([
    ['text/markdown', 'x', '# x', 'markdown'],
    ['text/plain', 'README.md', '# x', 'markdown'],
    ['', 'readme.markdown', '<p align="center">x</p>', 'markdown'],
    ['text/csv; charset=utf-8', 'x', 'a,b', 'csv'],
    ['application/vnd.ms-excel', 'x.CSV', 'a,b', 'csv'],
    ['text/tab-separated-values', '', 'a\tb', 'csv'],
    ['text/html', '', 'just words', 'html'],
    ['text/plain', '', '<p>x</p>', 'text'],
    ['text/plain', '', '<!doctype html><p>x</p>', 'html'],
    ['text/markdown', 'x.md', '<html><body>x</body></html>', 'html'],
    ['application/json', 'x.json', '{}', 'text'],
    ['image/png', 'x.png', 'not a picture at all', 'text'],
    ['application/pdf', '', 'Some junk\n%PDF-1.7\n1 0 obj <<>> endobj', 'pdf'],
    ['', 'issue.PDF', 'Some junk\n%PDF-1.7\n1 0 obj <<>> endobj', 'pdf'],
    ['text/markdown', 'x.md', 'Some words\n%PDF-1.7\n1 0 obj <<>> endobj', 'markdown'],
    ['application/pdf', 'x.pdf', 'It says %PDF-, and no more', 'text'],
  ])('among texts is what %s %s claims: %s', (contentType, name, content, kind) => {
    expect(documentKind(input(content, contentType, name))).toBe(kind)
  })
})

describe('a document that cannot be read', () => {
  it.each([
    ['\x89PNG\r\n\x1a\n', 'a PNG picture'],
    ['\xff\xd8\xff\xe0', 'a JPEG picture'],
    ['GIF89a', 'a GIF picture'],
    ['RIFF\0\0\0\0WEBP', 'a WebP picture'],
    ['RIFF\0\0\0\0WAVE', 'an audio file'],
    ['\0\0\0\x18ftypmp42', 'a video file'],
    ['BM\x36\0\0\0\0\0', 'a bitmap picture'],
    ['ID3\x04\0', 'an audio file'],
    ['OggS\0', 'an audio or video file'],
    ['\x1f\x8b\x08\0', 'a gzip archive'],
    ['Rar!\x1a\x07\x01\0', 'a RAR archive'],
    ['7z\xbc\xaf\x27\x1c', 'a 7-Zip archive'],
    ['MZ\x90\0\x03', 'a program'],
    ['\x7fELF\x02', 'a program'],
    ['%!PS-Adobe-3.0', 'a PostScript file'],
    ['<?xml version="1.0"?><svg xmlns="x">', 'an SVG picture'],
  ])('%j is called by what it looks like', (content, format) => {
    expect(refusal(content, 'application/pdf', 'x.pdf')).toBe(
      `unsupported: The document looks like ${format}, which cannot be read.`,
    )
  })

  it.each(['ID3 tags are metadata.', 'the ftyp box', 'Old RIFFWAVE files.', 'See the AVI format.'])(
    'is not the text that merely begins with such letters: %j',
    (text) => {
      expect(documentKind(input(text, 'text/plain'))).toBe('text')
    },
  )

  it('is not a short text with a stray control character', () => {
    expect(documentKind(input('A short note.\x0bIts second line.'))).toBe('text')
  })

  it('is a ZIP archive or another kind of file in one', () => {
    expect(refusal(zipOf({ 'a.txt': 'x' }))).toContain('a ZIP archive')
    expect(refusal(zipOf({ mimetype: 'application/vnd.oasis.opendocument.graphics', 'content.xml': '' }))).toContain(
      'OpenDocument',
    )
    expect(refusal(zipOf({ '[Content_Types].xml': '', 'xl/workbook.bin': 'x' }))).toContain('.xlsb')
  })

  it.each([
    ['WordDocument', 'unsupported: The document is in the old binary Word format (.doc); save it as .docx.'],
    ['Workbook', 'unsupported: The document is in the old binary Excel format (.xls); save it as .xlsx.'],
    [
      'PowerPoint Document',
      'unsupported: The document is in the old binary PowerPoint format (.ppt); save it as .pptx.',
    ],
    ['EncryptedPackage', 'encrypted: The file is protected by a password.'],
    ['Something', 'unsupported: The document is in an old binary format that cannot be read.'],
  ])('in an OLE container with %s says so', (stream, words) => {
    expect(refusal(oleFile(stream))).toBe(words)
  })

  it('is one without a byte', () => {
    expect(refusal('')).toBe('no_text: The document is empty.')
  })

  it('is binary data of no known format, even when it claims to be a text', () => {
    const noise = Buffer.from(Array.from({ length: 4096 }, (_, index) => (index * 7919 + 13) % 251))
    expect(refusal(noise, 'text/plain', 'x.txt')).toBe(
      'unsupported: The document is a binary file of an unknown format.',
    )
  })

  it('is a damaged container', () => {
    expect(refusal(wordFile('x'.repeat(500)).subarray(0, 400))).toBe(
      'broken: The file is damaged: its parts cannot be read.',
    )
  })

  it('of any bytes ends in a kind or a fault of the document', () => {
    const heads = fc.constantFrom(
      '',
      '%PDF-',
      'PK\x03\x04',
      'PK\x05\x06',
      '\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1',
      '<?xml',
      '<!--',
    )
    fc.assert(
      fc.property(heads, fc.uint8Array({ maxLength: 200 }), fc.string(), (head, bytes, claim) => {
        const content = Buffer.concat([Buffer.from(head, 'latin1'), bytes])
        expect(refusal(content, claim, claim)).not.toBe('')
      }),
    )
  })
})
