// A gateway that starts one engine, gives it a document, prints the engine's process id once it works or is done, and waits to be killed.
import { spawn } from 'node:child_process'

const [entry, document] = process.argv.slice(2)
const engine = spawn(process.execPath, [entry, String(process.pid), String(2 ** 40)], {
  stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
})
const pipe = engine.stdio[3]
const head = JSON.stringify({ contentType: '', name: '', baseUrl: '', limits: {}, contentBytes: 1000 })
const prefix = Buffer.alloc(8)
prefix.writeUInt32BE(head.length, 0)
prefix.writeUInt32BE(document.length, 4)
const tell = () => process.stdout.write(`${engine.pid}\n`)
engine.stderr.once('data', tell)
// Ready.
pipe.once('data', () => {
  pipe.on('data', (chunk) => {
    // The answer; before it comes the word that it has begun.
    if (chunk.includes('rssBytes')) tell()
  })
  pipe.write(Buffer.concat([prefix, Buffer.from(head + document)]))
})
