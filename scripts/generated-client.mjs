// `npm run clients:generated`: openapi-python-client makes a client of openapi.json, which then asks a gateway in front of the sandbox's
// simulators. Fails where a route or a model gets lost on the way, or an answer does not fit its model.
import { spawnSync } from 'node:child_process'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { exitOf, withPython } from './python-environment.mjs'
import { startGateway } from './sandbox-gateway.mjs'

const GENERATOR = 'openapi-python-client==0.29.1'
const DOCUMENT = fileURLToPath(new URL('../openapi.json', import.meta.url))
/** What the generator cannot read by its nature: it knows JSON, forms and binaries, and leaves out the rest of a route. */
const EXPECTED = [/Unsupported content type/, /Unsupported content_type application\/x-tar/]

const PROGRAM = `
import sys
from client import AuthenticatedClient
from client.api.account import list_models
from client.api.chat import create_chat_completion
from client.models import ChatCompletion, ChatMessage, ChatRequest, ModelList, OpenAIError

client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2])
models = list_models.sync(client=client)
assert isinstance(models, ModelList) and len(models.data) > 0, models
request = ChatRequest(model="gpt-4o-mini", messages=[ChatMessage(role="user", content="Hello")])
answer = create_chat_completion.sync(client=client, body=request)
assert isinstance(answer, ChatCompletion), answer
refused = create_chat_completion.sync(client=client, body=ChatRequest(model="none", messages=request.messages))
assert isinstance(refused, OpenAIError) and refused.error.code == "model_not_found", refused
print(f"{len(models.data)} models; chat answered: {answer.choices[0].message.content}")
`

/** Warnings of the generator that say something of a route or a model is lost. */
const lossesIn = (output) =>
  output
    .split(/\n(?=WARNING|ERROR|Unable)/)
    .filter((text) => /^(?:WARNING|ERROR|Unable)/.test(text) && !EXPECTED.some((pattern) => pattern.test(text)))

const PLACE = /_type_\d|_item\.py$|_response_\d/

/** Files with a name made of their place. The document may call a form so itself: `ResponseInputItem`, as the API does. */
async function namelessOf(files) {
  const { components } = JSON.parse(await readFile(DOCUMENT, 'utf8'))
  const called = new Set(Object.keys(components.schemas).map((name) => `models/${name.toLowerCase()}.py`))
  return files.filter((file) => PLACE.test(file) && !called.has(file.replaceAll('_', '')))
}

const succeeded = await withPython([GENERATOR], async (programOf, directory) => {
  const target = join(directory, 'client')
  const { stdout, stderr } = spawnSync(
    programOf('openapi-python-client'),
    ['generate', '--path', DOCUMENT, '--output-path', target, '--meta', 'none'],
    { encoding: 'utf8', env: { ...process.env, PATH: `${join(directory, 'bin')}:${process.env.PATH}` } },
  )
  const losses = lossesIn(`${stdout}\n${stderr}`)
  for (const loss of losses) console.error(loss.trim())
  const files = (await readdir(target, { recursive: true })).filter((file) => file.endsWith('.py'))
  const models = files.filter((file) => file.startsWith('models/')).length - 1
  const nameless = await namelessOf(files)
  console.log(
    `${files.length} files, ${models} of them models; without a name of their own: ${nameless.join(', ') || 'none'}`,
  )
  return losses.length === 0 && nameless.length === 0 && (await asks(programOf('python'), directory))
})
process.exitCode = succeeded === false ? 1 : 0

/** Whether the client gets what it asks for. */
async function asks(python, directory) {
  await writeFile(join(directory, 'ask.py'), PROGRAM)
  const gateway = await startGateway()
  try {
    const status = await exitOf(python, ['ask.py', gateway.url, gateway.key], {
      cwd: directory,
      env: { ...process.env, PYTHONPATH: directory },
    })
    return status === 0
  } finally {
    await gateway.close()
  }
}
