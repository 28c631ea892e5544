import { describe, expect, it } from '@jest/globals'
import { ManualSource } from '../../../test/support/byte-streams.js'
import { attemptOf, failureOf, newCall, targetOf } from '../../../test/support/raw-upstream.js'
import type { ResponseProgress } from '../../dialects/response-state.js'
import type { UpstreamResponse } from '../../upstream/exchange.js'
import { UpstreamClient } from '../../upstream/upstream-client.js'
import type { AttemptContext } from '../contract.js'
import { P1ResponsesProvider } from './p1-responses.js'

const CONTEXT: AttemptContext = {
  ...attemptOf(newCall('/v1/responses')),
  channelId: 'p1',
  target: targetOf(1),
  credentials: 'secret',
  callersKey: false,
  upstreamModel: 'gpt-5-mini',
  modelMap: {},
  options: {},
  deadlineAtMs: Infinity,
}

/** An upstream that answers the same to everything. */
class StandInClient extends UpstreamClient {
  constructor(
    private readonly status: number,
    private readonly type: string,
    private readonly text: string,
  ) {
    super()
  }

  override send(): Promise<UpstreamResponse> {
    const body = new ManualSource()
    setImmediate(() => {
      body.data(this.text)
      body.end()
    })
    return Promise.resolve({ status: this.status, headers: { 'content-type': this.type }, body })
  }
}

const progressOf = (status: number, type: string, text: string): Promise<ResponseProgress> =>
  new P1ResponsesProvider(new StandInClient(status, type, text)).progress('resp_1', CONTEXT)

const NOT_FOUND = JSON.stringify({
  error: { message: "Response with id 'resp_1' not found.", type: 'invalid_request_error', param: null, code: null },
})

describe('A response that its upstream is asked for', () => {
  it('is unknown where the upstream itself says so', async () => {
    expect(await progressOf(404, 'application/json', NOT_FOUND)).toBe('unknown')
  })

  it.each([
    ['a proxy does not know the path', 404, 'text/html', '<html><body>404 Not Found</body></html>'],
    ['a proxy answers in JSON of its own', 404, 'application/json', '{"detail":"Not Found"}'],
    ['the upstream fails', 500, 'application/json', NOT_FOUND],
  ])('may still be there where %s: its bill stays open', async (_what, status, type, text) => {
    await failureOf(progressOf(status, type, text))
  })
})
