import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { figure, memoryFigure, timeFigures } from './figures.mjs'

const TITLE = 'Test files of pdf.js'
const LIMIT_MS = 15_000

const outcomeOf = ({ output, fault, error, late, crashed }) =>
  output ? 'read' : (fault ?? (error ? 'error' : late ? 'late' : crashed ? 'crashed' : 'unknown'))

/** Reads every `step`th file of the suite: each must be read or refused within 15 s, and none may end the process. */
export async function measureRobustness(reader, directory, step) {
  const place = join(directory, 'pdfjs', 'test', 'pdfs')
  if (!existsSync(place)) return { title: TITLE, isAbsent: true }
  const files = readdirSync(place)
    .filter((name) => name.endsWith('.pdf'))
    .sort()
    .filter((_, index) => index % step === 0)
  const documents = []
  for (const name of files) {
    const input = { bytes: readFileSync(join(place, name)), contentType: 'application/pdf', name, baseUrl: '' }
    const answer = await reader.read(input, LIMIT_MS)
    const outcome = outcomeOf(answer)
    const failure = ['error', 'late', 'crashed'].includes(outcome) ? `${outcome} ${answer.error ?? ''}` : undefined
    documents.push({
      name,
      outcome,
      ms: answer.ms ?? LIMIT_MS,
      cpuMs: answer.cpuMs ?? LIMIT_MS,
      pages: answer.output?.pages ?? 1,
      failure,
    })
  }
  const count = (outcome) => documents.filter((one) => one.outcome === outcome).length
  const counts = ['read', 'no_text', 'encrypted', 'broken', 'too_large', 'unsupported'].map((name) =>
    figure(name.replace('_', ' '), count(name)),
  )
  const figures = [
    ...counts,
    figure('ended the process', count('crashed'), { most: 0 }),
    figure('longer than 15 s', count('late'), { most: 0 }),
    figure('threw something else', count('error'), { most: 0 }),
    ...timeFigures(documents),
    memoryFigure(reader),
  ]
  return { title: `${TITLE}: ${files.length} files`, isOwn: false, figures, documents }
}
