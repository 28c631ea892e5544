import { once } from 'node:events'
import { afterEach, describe, expect, it } from '@jest/globals'
import { startCall } from '../support/failing-calls.js'
import { openRaw, type RawAnswer } from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import {
  type CallForm,
  type ContractLab,
  errorIn,
  type ProviderPlan,
  type Refusal,
  startContractLab,
  queueFault,
  timesSent,
  type UpstreamFault,
  withContractLab,
} from './provider-lab.js'

/** Short enough to wait for, long enough for a busy machine. */
const IMPATIENT = { channel: { timeouts: { firstByteMs: 1_000, idleMs: 1_000 } } }

/** What is the channel's own fault: another one may do better. */
const CHANNEL_FAULTS: readonly UpstreamFault[] = ['refusedKey', 'busy', 'failure', 'malformed']

/** The data of each event, whatever its line ends. */
const dataOf = (text: string): string[] =>
  text.split(/\r?\n\r?\n/).flatMap((frame) => frame.split(/\r?\n/).filter((line) => line.startsWith('data: ')))

function expectRefusal({ errors }: CallForm, answer: RawAnswer, refusal: Refusal): void {
  const error = errorIn(answer.text)
  const told = { status: answer.status, word: errors.wordOf(error), complete: answer.complete }
  expect(told).toEqual({ ...refusal, complete: true })
  expect(answer.headers['content-type']).toBe('application/json')
  expect(errors.messageOf(error)).toMatch(/^.{5,512}$/)
  expect(answer.headers['x-request-id']).toMatch(/^req_/)
}

/** Of each fault before the first byte, whose it is. */
const refusalsOf = ({ errors }: CallForm): readonly (readonly [UpstreamFault, Refusal])[] => [
  ['callersFault', errors.callersFault],
  ['refusedKey', errors.failed],
  ['busy', errors.busy],
  ['failure', errors.failed],
  ['malformed', errors.failed],
]

function describeAnswers(form: CallForm, lab: () => ContractLab): void {
  it('is answered to its end, and the upstream finds nothing to complain of', async () => {
    const answer = await lab().send(form.request(lab().upstream))
    expect({ status: answer.status, complete: answer.complete }).toEqual({ status: 200, complete: true })
    form.expectAnswer(answer)
    if (form.terminator !== undefined) expect(dataOf(answer.text).at(-1)).toContain(form.terminator)
    expect(answer.headers['x-request-id']).toMatch(/^req_/)
    expect(lab().upstream.violations).toEqual([])
  })

  it('says in its log line which channel served it, and what it took', async () => {
    const answer = await lab().send(form.request(lab().upstream))
    const line = await lab().gateway.logLine(String(answer.headers['x-request-id']))
    expect(line).toMatchObject({ status: 200, channel: 'first', attempts: 1 })
    if (form.usage === undefined) expect(line).not.toHaveProperty('usage')
    else expect(line['usage']).toMatchObject(form.usage)
  })

  const { unknownFields } = form
  if (unknownFields !== undefined)
    it('reaches the upstream with the fields that no specification names, as they were written', async () => {
      await lab().send(unknownFields.request)
      expect(lab().upstream.lastRequest?.body.toString()).toContain(unknownFields.arrives)
    })
}

function describeRefusals(form: CallForm, lab: () => ContractLab, plan: ProviderPlan): void {
  it.each(refusalsOf(form))('after %s has the fault of the right party: %j', async (fault, refusal) => {
    const answer = await lab().sendAfter(fault, form.request(lab().upstream))
    expectRefusal(form, answer, refusal)
    if (fault === 'callersFault' || fault === 'refusedKey') expect(answer.headers['x-should-retry']).toBe('false')
    if (fault === 'busy') expect(answer.headers['retry-after']).toMatch(/^([1-9]|[1-5]\d|60)$/)
    const line = await lab().gateway.logLine(String(answer.headers['x-request-id']))
    expect(line).toMatchObject({ status: answer.status, channel: 'first', attempts: 1 })
    expect(line).not.toHaveProperty('usage')
  })

  it.each([400, 401, 500])('hears nothing of a key that a refusal with %i quotes', async (status) => {
    const message = `The key ${plan.credentials} is not for this.`
    const quoting = { error: { message, type: 'invalid_request_error' }, type: 'error', code: status, message }
    const headers = { 'content-type': 'application/json' }
    const fault = { kind: 'status', status, headers, body: JSON.stringify(quoting) } as const
    const answer = await lab().sendAfter(fault, form.request(lab().upstream))
    expect(answer.status).toBeGreaterThanOrEqual(400)
    for (const secret of plan.credentials.split('|')) expect(answer.text).not.toContain(secret)
  })
}

function describeSilence(form: CallForm, plan: ProviderPlan, exposed: string[]): void {
  if (form.isPatient !== true)
    it('of an upstream that never answers ends with the deadline for the first byte', async () => {
      await withContractLab(plan, exposed, IMPATIENT, async ({ sendAfter, upstream }) => {
        expectRefusal(form, await sendAfter('hang', form.request(upstream)), form.errors.timedOut)
      })
    })

  const breaks: readonly (readonly ['cut' | 'stall', Refusal])[] = [
    ['cut', form.errors.failed],
    ...(form.isPatient === true ? [] : [['stall', form.errors.timedOut] as const]),
  ]
  it.each(breaks)(
    'whose answer is broken by a %s is visibly not whole, and not asked for again',
    async (fault, refusal) => {
      await withContractLab(plan, exposed, IMPATIENT, async ({ sendAfter, upstream }) => {
        const request = form.request(upstream)
        const answer = await sendAfter(fault, request)
        expect(timesSent(upstream, request)).toBe(1)
        if (form.terminator === undefined) expectRefusal(form, answer, refusal)
        else {
          expect({ status: answer.status, complete: answer.complete }).toEqual({ status: 200, complete: true })
          const last = dataOf(answer.text).at(-1) ?? ''
          expect(last).not.toContain(form.terminator)
          expect(form.errors.wordOf(errorIn(last.slice('data: '.length)))).toBe(refusal.word)
        }
      })
    },
  )
}

function describeCallers(form: CallForm, plan: ProviderPlan, exposed: string[]): void {
  it('of a caller who leaves before the answer ends at the upstream at once', async () => {
    await withContractLab(plan, exposed, {}, async ({ upstream, gateway }) => {
      const request = form.request(upstream)
      queueFault(upstream, 'hang', request)
      const [arrived, aborted] = [upstream.nextRequest(), upstream.nextAbort()]
      const disconnect = startCall(gateway, request)
      await arrived
      disconnect()
      expect((await aborted).answeredStatus).toBeUndefined()
      await upstream.idle()
      await gateway.close().catch(() => undefined)
      expect(gateway.logText()).toContain('"status":499')
    })
  })

  if (form.terminator !== undefined)
    it('of a caller who leaves in the middle ends at the upstream at once, which is not held against it', async () => {
      await withContractLab(plan, exposed, { withSecond: true }, async ({ upstream, second, gateway, send }) => {
        const request = form.request(upstream)
        queueFault(upstream, 'stall', request)
        const aborted = upstream.nextAbort()
        const response = await openRaw(gateway.url, request)
        await once(response, 'data')
        response.destroy()
        await aborted
        expect((await send(request)).status).toBe(200)
        expect([timesSent(upstream, request), timesSent(second, request)]).toEqual([2, 0])
      })
    })
}

function describeSecondChannel(form: CallForm, plan: ProviderPlan, exposed: string[]): void {
  const movesOnAfter = form.movesOnAfter ?? CHANNEL_FAULTS
  if (form.asksAll !== true)
    it.each(movesOnAfter)('is served by a second channel after %s', async (fault) => {
      await withContractLab(plan, exposed, { withSecond: true }, async ({ upstream, second, sendAfter }) => {
        const request = form.request(upstream)
        const answer = await sendAfter(fault, request)
        expect({ status: answer.status, complete: answer.complete }).toEqual({ status: 200, complete: true })
        form.expectAnswer(answer)
        expect([timesSent(upstream, request), timesSent(second, request)]).toEqual([1, 1])
      })
    })

  if (form.asksAll !== true)
    it("is not sent to a second channel where it is the caller's fault", async () => {
      await withContractLab(plan, exposed, { withSecond: true }, async ({ upstream, second, sendAfter }) => {
        const request = form.request(upstream)
        expectRefusal(form, await sendAfter('callersFault', request), form.errors.callersFault)
        expect([timesSent(upstream, request), timesSent(second, request)]).toEqual([1, 0])
      })
    })
}

/**
 * What every provider that is called over HTTP keeps, whatever its capability: through a whole gateway and over real
 * sockets on both sides. `plan` says only what the specification lets differ.
 */
export function describeProvider(name: string, plan: ProviderPlan): void {
  describe(name, () => {
    const exposed: string[] = []
    let lab: ContractLab
    shareLab(async () => (lab = await startContractLab(plan, exposed)))
    afterEach(() => {
      lab.upstream.reset()
    })

    describe.each(plan.forms)('a call: $name', (form) => {
      describeAnswers(form, () => lab)
      describeRefusals(form, () => lab, plan)
      describeSilence(form, plan, exposed)
      describeCallers(form, plan, exposed)
      describeSecondChannel(form, plan, exposed)
    })

    // The last one: it searches what the others have heard, and what their gateways had logged when they were closed.
    it('shows the credentials of the channel in no answer, no header and no line of the log', () => {
      const told = exposed.join('\n')
      expect(told).toContain('"channel":"first"')
      for (const secret of plan.credentials.split('|')) expect(told).not.toContain(secret)
    })
  })
}
