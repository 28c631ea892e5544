import type { IssuedKeyDto, KeyChangeDto, KeyDto, NewKeyDto } from '../keys.dto.js'

/** Plain objects, as they are typed and sent. */
export type NewKeyFields = Pick<NewKeyDto, keyof NewKeyDto>
export type KeyChangeFields = Pick<KeyChangeDto, keyof KeyChangeDto>

/**
 * Where keys are issued: in the store itself, or at a gateway that runs. Speaks the words of the admin interface. Rejects
 * with an `Error` whose message is for the operator.
 */
export interface KeyDesk {
  create(key: NewKeyFields): Promise<IssuedKeyDto>
  /** All of them. */
  list(): Promise<readonly KeyDto[]>
  show(id: string): Promise<KeyDto>
  change(id: string, change: KeyChangeFields): Promise<KeyDto>
  revoke(id: string): Promise<KeyDto>
  close(): Promise<void>
}

/** What goes wrong for a reason that the operator can do something about. */
export class DeskFailure extends Error {
  override readonly name = 'DeskFailure'
}
