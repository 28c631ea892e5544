import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { DocumentServiceLab, EMPTY_METADATA } from '../../test/support/document-service-lab.js'
import { eventually } from '../../test/support/eventually.js'
import { newCall } from '../../test/support/raw-upstream.js'
import { GatewayError } from '../core/gateway-error.js'

let lab: DocumentServiceLab

beforeEach(() => {
  lab = new DocumentServiceLab()
  lab.route = undefined
})
afterEach(() => lab.expectAllGivenBack())

describe('A file that the gateway reads itself', () => {
  it('goes to the parser as it was claimed, and comes back with what that found', async () => {
    const { request, leave } = await lab.fileRequest('some "text"')
    const call = newCall()
    const { data } = await lab.bodyOf(request, call)
    await leave()
    expect(data).toEqual({
      metadata: {
        ...EMPTY_METADATA,
        title: 'Title',
        statusCode: 200,
        contentType: 'text/plain',
        cached: 0,
      },
      html: '',
      markdown: 'some "text"',
    })
    expect(lab.parser.parsed).toMatchObject([{ name: 'a.txt', contentType: 'text/plain', baseUrl: '' }])
    expect(call.log.usage).toEqual({ units: { documents: 1, pages: 3 }, estimated: false })
  })

  it('stays as long as somebody waits for it, although whoever sent it first has left', async () => {
    let open: () => void = () => undefined
    lab.parser.gate = new Promise((opened) => {
      open = opened
    })
    const [first, second] = [await lab.fileRequest('same'), await lab.fileRequest('same')]
    const [leaving, staying] = [newCall(), newCall()]
    const left = lab.service.parse(first.request, leaving)
    await eventually(() => lab.parser.parsed.length === 1)
    const stayed = lab.bodyOf(second.request, staying)
    // The second one joins as soon as its bytes are known.
    await eventually(() => staying.departure['listeners'].length === 1)
    leaving.departure.announce()
    await first.leave()
    await expect(left).rejects.toMatchObject({ kind: 'caller_left' })
    expect(lab.parser.parsed[0]?.departure.left).toBe(false)
    open()
    expect((await stayed).data.markdown).toBe('same')
    await second.leave()
    expect(lab.parser.parsed).toHaveLength(1)
  })

  it('ends with the last one who waits for it', async () => {
    lab.parser.gate = new Promise(() => undefined)
    const { request, leave } = await lab.fileRequest('alone')
    const late = lab.service.parse({ ...request, timeoutMs: 50 }, newCall())
    await expect(late).rejects.toMatchObject({ kind: 'upstream_timeout', message: expect.stringContaining('50 ms') })
    expect(lab.parser.parsed[0]?.departure.left).toBe(true)
    await leave()
    // The parser never ends here, and so never lets go.
    await lab.uploads.pop()?.spool.remove()
  })

  it('fails as the parser says, and is read anew afterwards', async () => {
    lab.parser.failure = new GatewayError('unprocessable', 'The document is protected by a password.')
    const { request, leave } = await lab.fileRequest('locked')
    await expect(lab.service.parse(request, newCall())).rejects.toBe(lab.parser.failure)
    lab.parser.failure = undefined
    expect((await lab.bodyOf(request)).data.metadata.cached).toBe(0)
    await leave()
  })

  it('is not begun for somebody who has left already', async () => {
    const { request, leave } = await lab.fileRequest('gone')
    const call = newCall()
    call.departure.announce()
    await expect(lab.service.parse(request, call)).rejects.toMatchObject({ kind: 'caller_left' })
    await leave()
    expect(lab.parser.parsed).toEqual([])
  })
})
