import { TEST_KEY } from './gateway.js'
import { RealtimeProbe } from './realtime-probe.js'
import { appendAudio, spoken, TRANSCRIPTION } from './spoken-turn-lab.js'

interface GatewayAddress {
  readonly url: string
}

/** One turn in text, answered in speech. */
export async function talk(gateway: GatewayAddress, words: string): Promise<void> {
  const url = gateway.url.replace('http', 'ws')
  const probe = await RealtimeProbe.open({ url, key: TEST_KEY, model: 'gpt-realtime' })
  const content = [{ type: 'input_text', text: words }]
  probe.send({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content } })
  probe.send({ type: 'response.create' })
  await probe.until('response.done')
  probe.socket.close()
  await probe.closed
}

/** One turn that is spoken, written down by the upstream, and answered. */
export async function speakTo(gateway: GatewayAddress): Promise<void> {
  const url = gateway.url.replace('http', 'ws')
  const probe = await RealtimeProbe.open({ url, key: TEST_KEY, model: 'gpt-realtime' })
  const input = { transcription: { model: 'gpt-4o-mini-transcribe' }, turn_detection: null }
  probe.send({ type: 'session.update', session: { type: 'realtime', audio: { input } } })
  await probe.next('session.updated')
  appendAudio(probe, spoken())
  probe.send({ type: 'input_audio_buffer.commit' })
  await probe.next(`${TRANSCRIPTION}.completed`)
  probe.send({ type: 'response.create' })
  await probe.until('response.done')
  probe.socket.close()
  await probe.closed
}
