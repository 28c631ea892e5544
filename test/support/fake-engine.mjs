// An engine that does what the document tells it to. It shares nothing with the real one but what they say on the wire.
import { createHash } from 'node:crypto'
import { readdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'

const pipe = new Socket({ fd: 3 })
pipe.on('close', () => process.exit(0))
pipe.on('error', () => process.exit(0))

const frame = (head, content = '') => {
  const [headBytes, payload] = [Buffer.from(JSON.stringify(head)), Buffer.from(content)]
  const prefix = Buffer.alloc(8)
  prefix.writeUInt32BE(headBytes.length, 0)
  prefix.writeUInt32BE(payload.length, 4)
  return Buffer.concat([prefix, headBytes, payload])
}

const read = (markdown, rssBytes = 1) => {
  const texts = { title: '', description: '', keywords: '', siteName: String(process.pid), favicon: '', language: '' }
  const metadata = { ...texts, warnings: [] }
  const content = `"html":"","markdown":${JSON.stringify(markdown)}`
  return frame({ outcome: 'read', kind: 'text', metadata, pages: 1, rssBytes }, content)
}

const spin = () => {
  for (;;);
}

/** Answers once as many processes as are wanted are in this at the same time; they meet in a directory. */
const meetOthers = (rest) => {
  const [count, directory] = rest.split(',')
  writeFileSync(join(directory, String(process.pid)), '')
  const look = setInterval(() => {
    if (readdirSync(directory).length < Number(count)) return
    clearInterval(look)
    pipe.write(read('met'))
  }, 10)
}

/** Ends before it has all of the document, and leaves its name in a directory. */
const vanish = (chunk) => COMMANDS.die(/vanish:(\S+)/.exec(chunk.toString())[1])

const openFiles = () =>
  readdirSync('/proc/self/fd').map((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`)
    } catch {
      // The look's own, closed by now.
      return ''
    }
  })

const COMMANDS = {
  echo: (rest) => pipe.write(read(rest)),
  digest: (_rest, _job, bytes) => pipe.write(read(createHash('sha256').update(bytes).digest('hex'))),
  head: (_rest, job) => pipe.write(read(JSON.stringify(job))),
  surroundings: () => pipe.write(read(JSON.stringify({ env: process.env, cwd: process.cwd(), open: openFiles() }))),
  pause: (milliseconds) => setTimeout(() => pipe.write(read('paused')), Number(milliseconds)),
  meet: meetOthers,
  hang: spin,
  wait: () => undefined,
  leave: (code) => process.exit(Number(code)),
  starve: () => {
    process.stderr.write('FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n')
    process.exit(5)
  },
  signal: (name) => process.kill(process.pid, name),
  die: (directory) => {
    writeFileSync(join(directory, String(process.pid)), '')
    process.kill(process.pid, 'SIGKILL')
  },
  fault: (fault) => pipe.write(frame({ outcome: 'fault', fault, message: `It is ${fault}.`, rssBytes: 1 })),
  starved: () => pipe.write(frame({ outcome: 'out_of_memory', rssBytes: 1 })),
  fail: (reason) => pipe.write(frame({ outcome: 'failed', reason, rssBytes: 1 })),
  swell: () => pipe.write(read('swollen', 2 ** 40)),
  babble: () => pipe.write('this is no frame at all'),
  nonsense: () => pipe.write(Buffer.concat([Buffer.from([0, 0, 0, 4, 0, 0, 0, 0]), Buffer.from('nope')])),
  flood: () => pipe.write(Buffer.from([0, 0, 0, 2, 0xff, 0xff, 0xff, 0xff, 0x7b, 0x7d])),
  twice: () => pipe.write(Buffer.concat([read('one'), frame({ outcome: 'failed', reason: '', rssBytes: 1 })])),
}

let chunks = []
let length = 0
pipe.on('data', (chunk) => {
  if (chunk.includes('hasty:')) pipe.write(read('hasty'))
  if (chunk.includes('vanish:')) vanish(chunk)
  chunks.push(chunk)
  length += chunk.length
  if (length < 8) return
  if (chunks[0].length < 8) chunks = [Buffer.concat(chunks)]
  const [headBytes, payloadBytes] = [chunks[0].readUInt32BE(0), chunks[0].readUInt32BE(4)]
  if (length < 8 + headBytes + payloadBytes) return
  const received = Buffer.concat(chunks)
  chunks = []
  length = 0
  const job = JSON.parse(received.subarray(8, 8 + headBytes).toString())
  const bytes = received.subarray(8 + headBytes)
  pipe.write(frame({ outcome: 'begun' }))
  const [command, rest = ''] = bytes.subarray(0, 200).toString().split(':')
  COMMANDS[command](rest, job, bytes)
})
pipe.write(frame({ outcome: 'ready' }))
