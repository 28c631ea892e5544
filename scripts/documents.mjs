// Writes openapi.json from the built gateway; with --check, fails when the file on disk says something else.
import { readFile, writeFile } from 'node:fs/promises'
import { format } from 'node:util'

const { createApplication, openApiDocument } = await import('../dist/app/create-app.js')
const { createLogging } = await import('../dist/observability/logger.js')
const { PROVIDERS } = await import('../dist/app/providers.js')
const { parseConfig } = await import('../dist/config/load-config.js')

const FILE = 'openapi.json'

const application = await createApplication({
  config: parseConfig('{}', {}, PROVIDERS),
  logging: createLogging('silent'),
  sandbox: false,
})
const document = `${JSON.stringify(openApiDocument(application), null, 2)}\n`
await application.close()

if (!process.argv.includes('--check')) {
  await writeFile(FILE, document)
} else if ((await readFile(FILE, 'utf8').catch(() => '')) !== document) {
  console.error(format('%s is stale: run `npm run documents` and commit it.', FILE))
  process.exitCode = 1
}
