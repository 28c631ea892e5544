import { Controller, Injectable, Param } from '@nestjs/common'
import { ApiBearerAuth, ApiOkResponse, ApiOperation, ApiParam, ApiTags } from '@nestjs/swagger'
import { GatewayError, quoted } from '../core/errors.js'
import type { RequestContext } from '../core/request-context.js'
import { ApiChatErrors } from '../dialects/error-docs.js'
import { type ListedModel, ProviderRouter } from '../routing/router.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { CurrentRequest } from '../server/json-request.js'
import { MODEL, MODELS } from './models.endpoints.js'

/** A model in the list form of the chat dialect, with the keys the messages family's SDK reads beside them. */
interface ModelEntry {
  readonly id: string
  readonly object: 'model'
  readonly created: number
  readonly owned_by: string
  readonly type: 'model'
  readonly display_name: string
  readonly created_at: string
}

interface ModelList {
  readonly object: 'list'
  readonly data: readonly ModelEntry[]
  readonly has_more: false
  readonly first_id: string | null
  readonly last_id: string | null
}

/** Upstreams publish no common date; the beginning of the epoch says "unknown" in both forms. */
const UNKNOWN_DATE = '1970-01-01T00:00:00Z'

@Injectable()
export class ModelsService {
  constructor(private readonly router: ProviderRouter) {}

  list(call: RequestContext): ModelList {
    const data = this.router.models(call.caller).map(entryOf)
    return {
      object: 'list',
      data,
      has_more: false,
      first_id: data[0]?.id ?? null,
      last_id: data.at(-1)?.id ?? null,
    }
  }

  find(id: string, call: RequestContext): ModelEntry {
    const model = this.router.models(call.caller).find((listed) => listed.id === id)
    if (model !== undefined) return entryOf(model)
    throw new GatewayError('unknown_model', `The model ${quoted(id)} does not exist or is not served here.`, {
      param: 'model',
    })
  }
}

const entryOf = ({ id, providers }: ListedModel): ModelEntry => ({
  id,
  object: 'model',
  created: 0,
  owned_by: providers.join('+'),
  type: 'model',
  display_name: id,
  created_at: UNKNOWN_DATE,
})

@ApiTags('models')
@ApiBearerAuth()
@Controller()
export class ModelsController {
  constructor(private readonly models: ModelsService) {}

  @Endpoint(MODELS)
  @ApiOperation({ summary: 'The models this key may use' })
  @ApiOkResponse({ schema: { type: 'object', additionalProperties: true } })
  @ApiChatErrors()
  list(@CurrentRequest() call: RequestContext): ModelList {
    return this.models.list(call)
  }

  @Endpoint(MODEL)
  @ApiOperation({ summary: 'One model this key may use' })
  @ApiParam({ name: 'model', type: String })
  @ApiOkResponse({ schema: { type: 'object', additionalProperties: true } })
  @ApiChatErrors()
  find(@Param('model') model: string, @CurrentRequest() call: RequestContext): ModelEntry {
    return this.models.find(model, call)
  }
}
