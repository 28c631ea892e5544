import type { Exchange } from '../server/exchange.js'
import { openAiFaults } from '../server/openai-errors.js'
import { unknownModel } from '../server/openai-rejection.js'
import type { P1Context } from './p1-context.js'
import { p1Headers } from './p1-headers.js'
import { P1_MODEL_IDS } from './p1-models.js'

/** GET /v1/models and /v1/models/{id}. */
export async function serveModels(exchange: Exchange, _context: P1Context): Promise<void> {
  const headers = { ...p1Headers(exchange, { tokenLimits: false }), 'content-type': 'application/json' }
  const render = (body: object): string => `${JSON.stringify(body, null, 2)}\n`
  if (await exchange.answeredByFault(openAiFaults({ headers, render, lineEnd: '\n' }), undefined)) return
  const models = P1_MODEL_IDS.map((id) => ({ id, object: 'model', created: 1_686_935_002, owned_by: 'system' }))
  const id = exchange.request.path.split('/')[3]
  const wanted = id === undefined ? undefined : models.find((model) => model.id === decodeURIComponent(id))
  if (id !== undefined && wanted === undefined) throw unknownModel(decodeURIComponent(id))
  await exchange.send(200, headers, render(wanted ?? { object: 'list', data: models }))
}
