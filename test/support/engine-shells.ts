import { cp, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { realEngine } from './parser-pools.js'

/** What stands in for the readers: documents are commands here. */
const ENGINE = `
const output = (markdown) => ({
  kind: 'text', html: '', markdown, pages: 1,
  metadata: { title: '', description: '', keywords: '', siteName: String(process.pid), favicon: '' },
})
const kept = []
const commands = {
  echo: (text) => output(text),
  spin: () => { process.stderr.write('begun'); for (;;); },
  bytes: () => { for (;;) kept.push(Buffer.alloc(16_000_000, 1)) },
  objects: () => { for (;;) kept.push({ one: kept.length, other: [kept.length] }) },
  deep: () => { const dive = (level) => dive(level + 1) + 1; return output(String(dive(0))) },
  forget: (text) => { void Promise.reject(new Error('forgotten')); return new Promise((resolve) => setTimeout(resolve, 10, output(text))) },
  chatter: (text) => { console.log('x'.repeat(1_000_000)); console.error('y'.repeat(1_000_000)); return output(text) },
}
export async function readDocument({ bytes }) {
  const [command, rest] = Buffer.from(bytes).toString().split(':')
  return commands[command](rest)
}
`

/** The process of the built engine with other readers in it; the directory is the caller's to remove. */
export async function engineShell(): Promise<{ readonly directory: string; readonly entry: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'engine-shell-'))
  await cp(dirname(realEngine()), directory, { recursive: true })
  await writeFile(join(directory, 'package.json'), '{ "type": "module" }')
  await writeFile(join(directory, 'engine.js'), ENGINE)
  return { directory, entry: join(directory, 'engine.process.js') }
}
