import type { RouteSpec } from '../core/endpoint.js'
import { LIST_AUDIT } from './audit.controller.js'
import { BACK_UP_STORE } from './backup.controller.js'
import { LIST_CHANNELS, RESET_CHANNEL } from './channels.controller.js'
import { CHANGE_KEY, CREATE_KEY, LIST_KEYS, REVOKE_KEY, SHOW_KEY } from './keys.controller.js'
import { RELOAD_CONFIGURATION } from './reload.controller.js'
import { SHOW_USAGE } from './usage-sums.controller.js'

/** What operators may ask, in the order in which it is shown. */
export const ADMIN_ROUTES: readonly RouteSpec[] = [
  ...[CREATE_KEY, LIST_KEYS, SHOW_KEY, CHANGE_KEY, REVOKE_KEY],
  ...[LIST_AUDIT, SHOW_USAGE, RELOAD_CONFIGURATION, LIST_CHANNELS, RESET_CHANNEL, BACK_UP_STORE],
]
