import { describe, expect, it } from '@jest/globals'
import { dataOf, framesOf, jsonOf, lastFrameEnd } from './sse.js'

const frames = (text: string): string[] => [...framesOf(Buffer.from(text))].map(String)

describe('lastFrameEnd', () => {
  it.each([
    ['', 0],
    ['data: a', 0],
    ['data: a\n', 0],
    ['data: a\r\n\r', 0],
    ['data: a\n\n', 9],
    ['data: a\r\n\r\n', 11],
    ['data: a\r\n\n', 10],
    ['data: a\n\r\n', 10],
    ['data: a\n\ndata: b\n', 9],
    ['data: a\n\ndata: b\n\ndata', 18],
    ['\ndata: a', 0],
  ])('finds where the last whole frame of %j ends', (text, end) => {
    expect(lastFrameEnd(Buffer.from(text))).toBe(end)
  })
})

describe('framesOf', () => {
  it('parts LF, CRLF and mixed frames, each with its empty line', () => {
    expect(frames('data: a\n\ndata: b\r\n\r\nevent: c\ndata: c\n\r\n')).toEqual([
      'data: a\n\n',
      'data: b\r\n\r\n',
      'event: c\ndata: c\n\r\n',
    ])
  })

  it('loses no byte, whatever lines there are', () => {
    const text = '\n\ndata: a\n\n\n\r\n: note\n\n\r\n\r\ndata: b\n\nrest'
    expect(frames(text).join('')).toBe(text)
  })
})

describe('dataOf', () => {
  it.each([
    ['data: a\n\n', 'a'],
    ['data:a\n\n', 'a'],
    ['data:  a\r\n\r\n', ' a'],
    ['event: x\r\ndata: a\r\ndata: b\r\n\r\n', 'a\nb'],
    [': note\n\n', undefined],
    ['event: x\n\n', undefined],
    ['database: a\n\n', undefined],
  ])('reads the data of %j', (frame, data) => {
    expect(dataOf(Buffer.from(frame))).toBe(data)
  })
})

describe('jsonOf', () => {
  it.each(['data: [DONE]\n\n', 'data: {"a":\n\n', 'data: [1]\n\n', 'data: null\n\n', ': note\n\n'])(
    'is undefined for %j',
    (frame) => {
      expect(jsonOf(Buffer.from(frame))).toBeUndefined()
    },
  )

  it('reads an object, over several data lines too', () => {
    expect(jsonOf(Buffer.from('data: {"a":\ndata: "ü"}\n\n'))).toEqual({ a: 'ü' })
  })
})
