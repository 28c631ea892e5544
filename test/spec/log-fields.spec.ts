import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { numberedLines } from '../../src/app/numbered-lines.js'
import { CHAT_PATH, chatText } from '../support/chat-bodies.js'
import { eventually } from '../support/eventually.js'
import { FULL, FullGateway, KeptAliveClient } from '../support/failing-calls.js'
import { startP1Gateway } from '../support/p1-gateway.js'
import { sendRaw } from '../support/raw-http.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

type Line = Readonly<Record<string, unknown>>

/** By field, what the page says of it. */
type Fields = ReadonlyMap<string, string>

/** The tables of fields in the section about the log: that of requests, and that of refusals. */
const [ofRequests, ofRefusals] = [
  ...read('docs/operations.md').matchAll(/^\| Field .*\n\| -.*\n((?:\|.*\n)+)/gm),
].map<Fields>(
  ([, rows = '']) =>
    new Map(
      rows.split('\n').flatMap((row) => {
        const [, names = '', meaning = ''] = row.split(/ *(?<!\\)\| */)
        return codesIn(names).map((name) => [name, meaning] as const)
      }),
    ),
)

function codesIn(text: string): string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)
}

/** As a worker's line stands in the log that all of them share. */
function asOfWorker(line: string): Line {
  let numbered = ''
  numberedLines(3, { write: (text) => (numbered = text) }).write(line)
  return JSON.parse(numbered) as Line
}

const linesOf = (log: string, message: string): Line[] =>
  log
    .split('\n')
    .filter((line) => line.includes(`"msg":"${message}"`))
    .map(asOfWorker)

const sorted = (names: Iterable<string>): string[] => [...new Set(names)].sort()
const fieldsIn = (lines: readonly Line[]): string[] => sorted(lines.flatMap((line) => Object.keys(line)))

/** Of a field that holds an object or a list of them. */
const namesWithin = (lines: readonly Line[], field: string): string[] =>
  sorted(lines.flatMap((line) => [line[field] ?? []].flat().flatMap((value) => Object.keys(value))))

describe('docs/operations.md, the line of a request', () => {
  let lines: readonly Line[] = []

  beforeAll(async () => {
    const { gateway, simulator, second, close } = await startP1Gateway({ withSecond: true })
    const ask = (more: object = {}) => sendRaw(gateway.url, { path: CHAT_PATH, body: chatText('hello', more) })
    try {
      await ask()
      simulator.queueFault('500')
      await ask()
      simulator.queueFault('reset')
      second.queueFault('reset')
      await ask()
      await ask({ messages: [] })
      await eventually(() => linesOf(gateway.logText(), 'request').length === 4)
      lines = linesOf(gateway.logText(), 'request')
    } finally {
      await close()
    }
  })

  it('lists every field that a line has, and none that no line has', () => {
    expect(sorted(ofRequests?.keys() ?? [])).toEqual(fieldsIn(lines))
  })

  it.each(['tried', 'usage', 'failure'])('names what the field %s holds, and nothing else', (field) => {
    expect(sorted(codesIn(ofRequests?.get(field) ?? ''))).toEqual(namesWithin(lines, field))
  })

  // Whatever is logged so seldom that no request above has it.
  it('lists every field that the code can write', () => {
    const code = read('src/common/observability/call-log.ts')
    const written = code.matchAll(/\b(?:word|count|duration|record)\('(\w+)'|[{,]"(\w+)":/g)
    const names = [...written].map(([, named = '', spelled = named]) => spelled)
    const documented = [...(ofRequests?.keys() ?? []), ...codesIn(ofRequests?.get('usage') ?? '')]
    // The number of a worker is put in front of its lines elsewhere.
    expect(sorted([...names, 'worker'])).toEqual(sorted(documented))
  })
})

describe('docs/operations.md, the line about refused requests', () => {
  const EVERY_LINE = ['worker', 'level', 'time', 'msg']
  let lab: FullGateway
  let lines: readonly Line[] = []

  beforeAll(async () => {
    lab = await FullGateway.start(FULL)
    const { answered } = await lab.fill()
    const client = new KeptAliveClient(lab.url)
    expect((await client.ask()).status).toBe(503)
    const found = (): Line[] => linesOf(lab.gateway.logText(), 'requests refused: the process cannot keep up')
    await eventually(() => found().length > 0)
    lines = found()
    client.socket.destroy()
    lab.empty()
    await answered
  })
  afterAll(() => lab.close())

  it('lists every field that the line has, and no other', () => {
    expect(sorted([...EVERY_LINE, ...(ofRefusals?.keys() ?? [])])).toEqual(fieldsIn(lines))
  })

  it('names every reason that is counted, and no other', () => {
    expect(sorted(codesIn(ofRefusals?.get('sinceStart') ?? ''))).toEqual(namesWithin(lines, 'sinceStart'))
  })
})
