import { TEST_KEY } from './gateway.js'
import { RealtimeProbe } from './realtime-probe.js'

interface Address {
  readonly url: string
}

/** One answer, asked for by instructions alone, whose client leaves in the middle of it. */
export async function leaveAnswer(gateway: Address, words: number): Promise<void> {
  const probe = await instructed(gateway, `#stall ${'word '.repeat(words)}`)
  await probe.until('response.output_audio.delta')
  probe.socket.close()
  await probe.closed
}

/** The same, whose upstream drops the connection in the middle of it. */
export async function loseAnswer(gateway: Address, words: number): Promise<void> {
  const probe = await instructed(gateway, `#drop ${'word '.repeat(words)}`)
  await probe.until('response.output_audio.delta')
  await probe.closed
}

async function instructed({ url }: Address, instructions: string): Promise<RealtimeProbe> {
  const probe = await RealtimeProbe.open({ url: url.replace('http', 'ws'), key: TEST_KEY, model: 'gpt-realtime' })
  const input = { turn_detection: null }
  probe.send({ type: 'session.update', session: { type: 'realtime', instructions, audio: { input } } })
  await probe.next('session.updated')
  probe.send({ type: 'response.create' })
  return probe
}
