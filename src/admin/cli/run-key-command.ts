import { newKey } from '../../auth/issued-key.js'
import type { KeyLimits } from '../../config/access-config.js'
import { guessingBits, LEAST_ADMIN_KEY_BITS } from '../../config/admin-key.js'
import type { KeyDto } from '../keys.dto.js'
import type { DeskCommand, LimitChanges } from './key-command.js'
import type { KeyDesk } from './key-desk.js'
import { issuedText, keyTable } from './key-output.js'

/** Does what a command says at a desk; resolves with what is to be printed. */
export async function runCommand(command: DeskCommand, desk: KeyDesk): Promise<string> {
  const { name, id = '', terms, limits } = command
  switch (name) {
    case 'create': {
      const issued = await desk.create({ ...(id === '' ? {} : { id }), ...terms, ...someLimits(limits, null) })
      if (command.isQuiet) return `${issued.key}\n`
      return command.isJson ? jsonText(issued) : issuedText(issued)
    }
    case 'list': {
      const keys = await desk.list()
      if (command.isQuiet) return ''
      return command.isJson ? jsonText(keys) : keyTable(keys)
    }
    case 'show':
      return shown(await desk.show(id), command)
    case 'update': {
      const current = Object.keys(limits).length === 0 ? null : (await desk.show(id)).limits
      return shown(await desk.change(id, { ...terms, ...someLimits(limits, current) }), command)
    }
    case 'revoke':
      return shown(await desk.revoke(id), command)
  }
}

/** Random text looks like a pattern once in a while; one that the configuration would refuse is no use. */
export function newAdminKey(): string {
  let key: string
  do key = newKey('sk-gw-admin-')
  while (guessingBits(key) < LEAST_ADMIN_KEY_BITS)
  return key
}

/** The limits there are with those that were named laid over them; null when none is left. */
function someLimits(changes: LimitChanges, current: KeyLimits | null): { limits?: KeyLimits | null } {
  const names = Object.keys(changes)
  if (names.length === 0) return {}
  const limits = Object.fromEntries(
    Object.entries({ ...current, ...changes }).filter((entry): entry is [string, number] => entry[1] !== null),
  )
  return { limits: Object.keys(limits).length === 0 ? null : limits }
}

function shown(key: KeyDto, { isQuiet, isJson }: DeskCommand): string {
  if (isQuiet) return ''
  return isJson ? jsonText(key) : keyTable([key])
}

const jsonText = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`
