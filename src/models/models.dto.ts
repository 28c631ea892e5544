import type { ModelClass, WritingDialect } from '../config/model-classes.js'
import type { ModelOffer } from '../providers/contract.js'

/** What the gateway knows of a model beside the form of a dialect. */
export interface ModelDetails extends ModelOffer {
  readonly class: ModelClass
  readonly capabilities: readonly string[]
  /** Absent where nothing is translated. */
  readonly dialects?: readonly WritingDialect[]
}

/** A model as clients of the chat dialect read it. */
export interface Model {
  readonly id: string
  readonly object: 'model'
  /** Unix seconds; 0 = not known. */
  readonly created: number
  /** The providers of the channels that serve it. */
  readonly owned_by: string
  readonly x_gateway: ModelDetails
}

export interface ModelList {
  readonly object: 'list'
  readonly data: readonly Model[]
}

/** A model as clients of the messages dialect read it. */
export interface MessagesModel {
  readonly type: 'model'
  readonly id: string
  readonly display_name: string
  /** RFC 3339; the beginning of 1970 = not known. */
  readonly created_at: string
  readonly capabilities: null
  readonly max_input_tokens: null
  readonly max_tokens: null
  readonly lifecycle: 'active'
  readonly line: null
  readonly deprecated_at: null
  readonly retires_at: null
  readonly x_gateway: ModelDetails
}

export interface MessagesModelList {
  readonly data: readonly MessagesModel[]
  /** Further models follow in the direction that was asked for. */
  readonly has_more: boolean
  readonly first_id: string | null
  readonly last_id: string | null
}
