/**
 * Asks by voice and saves the spoken answer:
 *
 *   node examples/realtime.mjs [question.wav] [answer.wav] [url] [key]
 *
 * The question is a WAV file of 24 kHz, 16 bit, mono; without one, or with `-`, a tone is sent. The url carries the
 * model. The defaults fit a gateway that runs as a sandbox on this machine.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { WebSocket } from 'ws'

const [question = '-', answer = 'answer.wav', url = 'ws://127.0.0.1:8080/v1/realtime?model=gpt-realtime', key] =
  process.argv.slice(2)

/** pcm16, the audio of a session unless it asks for another: 24,000 samples a second of two bytes. */
const RATE = 24_000
const BYTES_PER_SECOND = RATE * 2
/** One event carries 100 ms, which is also the least that can be committed. */
const CHUNK_BYTES = BYTES_PER_SECOND / 10
/** A microphone would take 100 ms for each. A file may go faster, but not at once: events per second are limited. */
const CHUNK_GAP_MS = 10

function fail(message) {
  console.error(`\n${message}`)
  process.exit(1)
}

/** The samples of a WAV file: the chunks after the RIFF header are walked, as `fmt ` and `data` may have others between. */
function readWav(file) {
  if (!existsSync(file)) fail(`There is no file ${file}.`)
  const bytes = readFileSync(file)
  if (bytes.toString('latin1', 0, 4) !== 'RIFF' || bytes.toString('latin1', 8, 12) !== 'WAVE') {
    fail(`${file} is not a WAV file.`)
  }
  let format
  for (let at = 12; at + 8 <= bytes.length;) {
    const name = bytes.toString('latin1', at, at + 4)
    const size = bytes.readUInt32LE(at + 4)
    const body = bytes.subarray(at + 8, at + 8 + size)
    if (name === 'fmt ' && body.length >= 16) {
      format = { channels: body.readUInt16LE(2), rate: body.readUInt32LE(4), bits: body.readUInt16LE(14) }
    }
    if (name === 'data') {
      const { channels, rate, bits } = format ?? {}
      if (channels === 1 && rate === RATE && bits === 16) return body
      fail(`${file} has ${rate} Hz, ${bits} bit, ${channels} channel(s); needed are ${RATE} Hz, 16 bit, 1 channel.`)
    }
    at += 8 + size + (size % 2)
  }
  return fail(`${file} has no audio.`)
}

/** One second of 440 Hz. */
function tone() {
  const samples = Int16Array.from({ length: RATE }, (_, at) => 8_000 * Math.sin((2 * Math.PI * 440 * at) / RATE))
  return Buffer.from(samples.buffer)
}

function writeWav(file, audio) {
  const header = Buffer.alloc(44)
  header.write('RIFF....WAVEfmt ', 'latin1')
  header.writeUInt32LE(36 + audio.length, 4)
  header.writeUInt32LE(16, 16) // length of the format
  header.writeUInt16LE(1, 20) // plain samples
  header.writeUInt16LE(1, 22) // one channel
  header.writeUInt32LE(RATE, 24)
  header.writeUInt32LE(BYTES_PER_SECOND, 28)
  header.writeUInt16LE(2, 32) // bytes per sample
  header.writeUInt16LE(16, 34) // bits per sample
  header.write('data', 36, 'latin1')
  header.writeUInt32LE(audio.length, 40)
  writeFileSync(file, Buffer.concat([header, audio]))
}

const seconds = (audio) => `${(audio.length / BYTES_PER_SECOND).toFixed(1)} s`

const audio = question === '-' ? tone() : readWav(question)
const heard = []

const headers = { Authorization: `Bearer ${key ?? 'sandbox-demo-key'}` }
const socket = new WebSocket(url, ['realtime'], { headers })
const send = (event) => socket.send(JSON.stringify(event))

async function ask() {
  for (let at = 0; at < audio.length; at += CHUNK_BYTES) {
    send({ type: 'input_audio_buffer.append', audio: audio.toString('base64', at, at + CHUNK_BYTES) })
    await wait(CHUNK_GAP_MS)
  }
  // The upstream does not detect the end of speech (turn_detection is null), so the client commits its audio.
  send({ type: 'input_audio_buffer.commit' })
  send({ type: 'response.create', response: { modalities: ['text', 'audio'] } })
  console.log(`Sent ${seconds(audio)} of ${question === '-' ? 'a test tone' : question}. The answer:`)
}

function finish({ status, status_details: details, usage }) {
  if (status !== 'completed') fail(`The answer is ${status}: ${JSON.stringify(details)}`)
  writeWav(answer, Buffer.concat(heard))
  console.log(`\nSaved ${seconds(Buffer.concat(heard))} of audio as ${answer}.\nUsage: ${JSON.stringify(usage)}`)
  socket.removeAllListeners('close').close(1000)
}

/** What is done with each event of the server; those that are not named here are of no interest. */
const on = {
  'session.created': () =>
    send({ type: 'session.update', session: { modalities: ['text', 'audio'], turn_detection: null } }),
  'session.updated': ask,
  'response.audio.delta': ({ delta }) => heard.push(Buffer.from(delta, 'base64')),
  'response.audio_transcript.delta': ({ delta }) => process.stdout.write(delta),
  'response.done': ({ response }) => finish(response),
  error: ({ error }) => fail(`Error ${error.code ?? error.type}: ${error.message}`),
}

socket.on('message', (data) => {
  const event = JSON.parse(data)
  void on[event.type]?.(event)
})
/** A refusal is an HTTP answer: what it says is in its body. */
socket.on('unexpected-response', async (_request, response) => {
  const text = (await response.toArray()).join('')
  fail(`The gateway refused with HTTP ${response.statusCode}: ${text}`)
})
socket.on('error', (error) => fail(`No connection to ${new URL(url).host}: ${error.message}`))
socket.on('close', (code, reason) => fail(`The session ended too early: ${code} ${reason}`))
