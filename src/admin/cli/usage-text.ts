import { LIMIT_NAMES, optionOf } from './key-command.js'

const limitHelp = LIMIT_NAMES.map((name) => `  --${optionOf(name)} <number>`).join('\n')

export const USAGE = `Usage: npm run keys -- <command>

  create [--id <id>] [terms]   issue a key; it is shown this once
  list                         all keys
  show <id>                    one key
  update <id> <terms>          change what a key may do; "none" takes a term away
  revoke <id>                  end a key for good
  admin-key                    make an admin key for auth.adminKey; nothing is stored

Terms:
  --models <globs>             with commas: 'gpt-*,tts-1'
  --expires <when>             90d, 12h, 30m, or a date (UTC); with update also one that is over
  --note <text>
${limitHelp}

Anywhere:
  --url <address>              ask the gateway that runs there, by the admin key in GATEWAY_ADMIN_KEY;
                               without it the store itself is opened, as the configuration names it
  --quiet                      create: print the key and nothing else; others: print nothing
  --json                       print JSON

Exit codes: 0 done, 1 refused or failed, 2 not understood.
`
