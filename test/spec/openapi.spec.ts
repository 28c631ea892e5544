import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import openapiTS, { astToString } from 'openapi-typescript'
import ts from 'typescript'
import { openApiDocument } from '../../src/app/openapi.js'
import { TEST_KEY } from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import { type P1Gateway, startP1Gateway } from '../support/provider-gateways.js'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const FILE = join(ROOT, 'openapi.json')

describe('openapi.json', () => {
  describe('for everything that it names', () => {
    const { paths, components } = openApiDocument()
    const operations = Object.values(paths).flatMap((methods) => Object.values(methods))

    it('says in words what it is', () => {
      const parts = [
        ...operations,
        ...operations.flatMap(({ parameters }) => (parameters ?? []) as object[]),
        ...Object.values(components).flatMap((kind) => Object.values(kind) as object[]),
      ]
      expect(parts.length).toBeGreaterThan(200)
      for (const part of parts) expect(part).toMatchObject({ description: expect.stringMatching(/\S{3}/) })
    })

    it('has a name of its own for each operation', () => {
      const names = operations.map(({ operationId }) => operationId)
      expect(new Set(names).size).toBe(names.length)
      expect(names).toEqual(
        expect.arrayContaining([
          ...['createChatCompletion', 'createMessage', 'countMessageTokens', 'createSpeech', 'createTranscription'],
          ...['listModels', 'createTextVideo', 'getImageTask', 'parseDocument', 'getUsage', 'createKey'],
        ]),
      )
    })

    it('shows the gateway where the world reaches it', () => {
      expect(openApiDocument('https://gateway.example.org/ai/')).toMatchObject({
        servers: [{ url: 'https://gateway.example.org/ai' }],
      })
    })

    it('shows the limits that are checked', () => {
      expect(components.schemas).toMatchObject({
        ChatRequest: { properties: { temperature: { type: ['number', 'null'], minimum: 0, maximum: 2 } } },
        MultiImageVideoRequest: {
          required: ['image_list', 'prompt'],
          properties: { image_list: { minItems: 1, maxItems: 4 }, prompt: { maxLength: 2500, pattern: '\\S' } },
        },
        DocumentUrl: { properties: { timeout: { minimum: 0.001 } } },
        NewKey: { additionalProperties: false, properties: { note: { maxLength: 500 } } },
      })
    })
  })
})

describe('TypeScript types made of openapi.json', () => {
  let directory: string
  let lab: P1Gateway
  shareLab(async () => (lab = await startP1Gateway({ simulator: {} })))

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'gateway-types-'))
    await symlink(join(ROOT, 'node_modules'), join(directory, 'node_modules'))
    await cp(join(ROOT, 'test/additions/typed-client/client.ts'), join(directory, 'client.ts'))
    await writeFile(join(directory, 'package.json'), '{"type":"module"}')
    await writeFile(join(directory, 'openapi.ts'), astToString(await openapiTS(await readFile(FILE, 'utf8'))))
  })
  afterAll(() => rm(directory, { recursive: true, force: true }))

  it('compile, refuse mistakes, and serve a client of a gateway', async () => {
    const options = {
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      target: ts.ScriptTarget.ES2022,
      strict: true,
      exactOptionalPropertyTypes: true,
      types: [],
      lib: ['lib.es2022.d.ts', 'lib.dom.d.ts'],
    }
    const program = ts.createProgram([join(directory, 'client.ts')], options)
    const { diagnostics } = program.emit()
    const faults = [...ts.getPreEmitDiagnostics(program), ...diagnostics]
    expect(faults.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))).toEqual([])
    const client = (await import(pathToFileURL(join(directory, 'client.js')).href)) as {
      ask(url: string, key: string): Promise<object>
    }
    expect(await client.ask(lab.gateway.url, TEST_KEY)).toEqual({
      text: 'You said: Hello',
      models: expect.arrayContaining(['gpt-4o-mini']),
      refusal: 'model_not_found',
    })
  })
})
