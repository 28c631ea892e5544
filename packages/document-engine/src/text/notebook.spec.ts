import { describe, expect, it } from '@jest/globals'
import { EngineFault, type EngineOutput } from '../model/document.js'
import { readNotebook } from './notebook.js'

const read = (notebook: unknown): EngineOutput =>
  readNotebook(
    {
      bytes: Buffer.from(typeof notebook === 'string' ? notebook : JSON.stringify(notebook)),
      contentType: '',
      name: '',
      baseUrl: '',
    },
    { pages: 1, decodedBytes: 1 },
  )
const code = (source: string | readonly string[], ...outputs: readonly unknown[]): unknown => ({
  cell_type: 'code',
  source,
  outputs,
})

describe('a notebook', () => {
  it('is its text, its code with the language of the kernel, and what that put out', () => {
    const { markdown, metadata, kind } = read({
      nbformat: 4,
      metadata: { kernelspec: { language: 'julia' }, language_info: { name: 'R' } },
      cells: [
        { cell_type: 'markdown', source: ['# Tea\n', '\n', 'A *note*.\n'] },
        code(['x <- 1\n', 'x'], { output_type: 'execute_result', data: { 'text/plain': ['[1] 1'] } }),
        code('print(2)', { output_type: 'stream', text: ['\u001b[31m2\u001b[0m\n'] }),
        code('stop()', { output_type: 'error', ename: 'Error', evalue: 'stopped' }),
        code('t', {
          output_type: 'display_data',
          data: {
            'text/html': '<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>',
            'text/plain': 'a b',
          },
        }),
        code('plot()', { output_type: 'display_data', data: { 'image/png': 'iVBOR', 'text/plain': '<Figure>' } }),
        code('%%bash\nls'),
        code('  '),
        { cell_type: 'raw', source: 'raw ``` text' },
      ],
    })
    expect(markdown).toBe(
      '# Tea\n\nA *note*.\n\n```r\nx <- 1\nx\n```\n\n```\n[1] 1\n```\n\n```r\nprint(2)\n```\n\n```\n2\n```\n\n```r\nstop()\n```\n\n```\nError: stopped\n```\n\n```r\nt\n```\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n```r\nplot()\n```\n\n```bash\n%%bash\nls\n```\n\nraw ``` text\n',
    )
    expect({ kind, title: metadata.title }).toEqual({ kind: 'notebook', title: 'Tea' })
    expect(metadata.warnings).toEqual([
      { code: 'pictures_dropped', message: 'Pictures that the code drew are left out: 1.' },
    ])
  })

  it('may be of the third version of the format', () => {
    const cells = [
      { cell_type: 'heading', level: 2, source: ['Cups'] },
      { cell_type: 'code', input: ['a = "```"'], outputs: [{ output_type: 'pyout', text: ['3'] }] },
    ]
    expect(read({ nbformat: 3, worksheets: [{ cells }] }).markdown).toBe(
      '## Cups\n\n````python\na = "```"\n````\n\n```\n3\n```\n',
    )
  })

  it('with members of other types is read as far as it goes', () => {
    expect(
      read({
        nbformat: 4,
        metadata: 3,
        cells: [null, [], { cell_type: 'code', source: 7, outputs: {} }, { source: [1, 'x'] }],
      }).markdown,
    ).toBe('x\n')
  })

  it('that is no JSON is damaged', () => {
    expect(() => read('{"nbformat": 4, "cells": [')).toThrow(EngineFault)
  })
})
