import { Injectable } from '@nestjs/common'
import type { Query } from '../core/dto.js'
import { GatewayError, quoted, UnknownPath } from '../core/errors.js'
import type { RequestContext } from '../core/request-context.js'
import { type ListedModel, ProviderRouter } from '../routing/router.js'
import type { MessagesModel, MessagesModelList, Model, ModelDetails, ModelList } from './models.dto.js'
import { pageOf, type PageRequest, readPageRequest } from './models-page.js'

/** What the models endpoints answer the clients of a dialect. */
interface ModelForm {
  /** Only those that these clients can use. */
  shows(model: ListedModel): boolean
  /** Throws `invalid_request` for a page that cannot be; the chat dialect has no pages. */
  list(models: readonly ListedModel[], request: PageRequest): ModelList | MessagesModelList
  one(model: ListedModel): Model | MessagesModel
  /** What a model that is not shown may be all the same. */
  readonly elsewhere: string
}

/** By translation a model may be for the clients of both forms. */
const isForMessages = ({ class: modelClass, dialects }: ListedModel): boolean =>
  dialects?.includes('messages') ?? modelClass === 'messages'

const isForOthers = ({ class: modelClass, dialects }: ListedModel): boolean =>
  dialects?.some((dialect) => dialect !== 'messages') ?? modelClass !== 'messages'

const detailsOf = ({ class: modelClass, capabilities, dialects, offer }: ListedModel): ModelDetails => ({
  class: modelClass,
  capabilities,
  ...(dialects === undefined ? {} : { dialects }),
  ...offer,
})

/** Public dates have no time; the beginning of the epoch says "unknown" in both forms. */
const createdAtOf = ({ createdAt = '1970-01-01' }: ListedModel): string => `${createdAt}T00:00:00Z`

const OPENAI: ModelForm = {
  shows: isForOthers,
  list: (models) => ({ object: 'list', data: models.map((model) => openAiModel(model)) }),
  one: (model) => openAiModel(model),
  elsewhere: 'Models of /v1/messages are shown to clients that send the header anthropic-version.',
}

const openAiModel = (model: ListedModel): Model => ({
  id: model.id,
  object: 'model',
  created: Date.parse(createdAtOf(model)) / 1000,
  owned_by: model.providers.join('+'),
  x_gateway: detailsOf(model),
})

const MESSAGES: ModelForm = {
  shows: isForMessages,
  list: (models, request) => {
    const { page, hasMore } = pageOf(newestFirst(models), request)
    return {
      data: page.map((model) => messagesModel(model)),
      has_more: hasMore,
      first_id: page[0]?.id ?? null,
      last_id: page.at(-1)?.id ?? null,
    }
  },
  one: (model) => messagesModel(model),
  elsewhere: 'Other models are shown to clients that send neither anthropic-version nor x-api-key.',
}

/** As the upstream lists them; models of one day in the order of names. */
const newestFirst = (models: readonly ListedModel[]): readonly ListedModel[] =>
  models.toSorted((one, other) => createdAtOf(other).localeCompare(createdAtOf(one)))

/** What is not known of a model is null, as the upstream allows. */
const messagesModel = (model: ListedModel): MessagesModel => ({
  type: 'model',
  id: model.id,
  display_name: model.id,
  created_at: createdAtOf(model),
  capabilities: null,
  max_input_tokens: null,
  max_tokens: null,
  lifecycle: 'active',
  line: null,
  deprecated_at: null,
  retires_at: null,
  x_gateway: detailsOf(model),
})

/** The models that a caller's key may use, in the form of its client's dialect. */
@Injectable()
export class ModelsService {
  constructor(private readonly router: ProviderRouter) {}

  list(query: Query, call: RequestContext): ModelList | MessagesModelList {
    const form = formOf(call)
    return form.list(this.shown(form, call), readPageRequest(query))
  }

  find(id: string, call: RequestContext): Model | MessagesModel {
    // A slash too many is one of the address: names have text on both sides of theirs.
    if (id.split('/').includes('')) throw new UnknownPath()
    const form = formOf(call)
    const model = this.shown(form, call).find((listed) => listed.id === id)
    if (model !== undefined) return form.one(model)
    const message = `The model ${quoted(id)} does not exist or is not served here. ${form.elsewhere}`
    throw new GatewayError('unknown_model', message, { param: 'model' })
  }

  private shown(form: ModelForm, { caller }: RequestContext): readonly ListedModel[] {
    return this.router.models(caller).filter((model) => form.shows(model))
  }
}

const formOf = ({ dialect }: RequestContext): ModelForm => (dialect === 'messages' ? MESSAGES : OPENAI)
