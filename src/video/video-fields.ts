/** What the service reads of either kind of body; all else only passes through. */
export interface VideoFields {
  readonly model_name?: string | null
  /** How old clients name the model; only where the kind knows it. */
  readonly model?: string | null
  readonly duration?: string | number | null
  readonly callback_url?: string | null
  readonly external_task_id?: string | null
}
