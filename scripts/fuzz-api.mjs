// `npm run fuzz:api`: schemathesis against a gateway in front of the sandbox's simulators, from the gateway's own openapi.json, with a
// fixed seed and all of its checks. Fails on any finding. `-- --seed 2` takes another seed.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { exitOf, withPython } from './python-environment.mjs'
import { startGateway } from './sandbox-gateway.mjs'

const SCHEMATHESIS = 'schemathesis==4.32.5'
const MOST_SECONDS = 240

const { values } = parseArgs({ options: { seed: { type: 'string', default: '1' } } })
if (!/^\d+$/.test(values.seed)) throw new Error('--seed takes a whole number.')

/** What the operations that read what no schema can judge answer with beside what positive_data_acceptance expects. */
const JUDGED = 'checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 401, 403, 404, 409, 415, 422, 429]'
/**
 * From the eleventh wrong admin key of a minute on, all wrong ones are answered with 429 instead of 401, whatever they ask for, and
 * ignored_auth knows no statuses but 401 and 403.
 */
const GUARDED = 'checks.ignored_auth.enabled = false'

/**
 * All checks are on. What follows are the answers that the gateway gives on purpose and that a check does not expect, for the
 * operations alone that give them; every other check stays on for them as well. Each operation stands in one place: the first counts.
 */
const configuration = ({ key, adminKey }) => `
[auth.openapi.bearer]
bearer = "${key}"
[auth.openapi.x-api-key]
api_key = "${key}"
[auth.openapi.adminKey]
bearer = "${adminKey}"

[checks]
enabled = true

# What these take depends on what no schema can say: whether a file is audio, whether one time is before another, which rules the
# upstream has beyond the gateway's, which parameters exclude each other, whether a model is served (400 in the audio dialect) and
# whether an Idempotency-Key was used before (422).
[[operations]]
include-operation-id = [
  "createChatCompletion", "createMessage", "countMessageTokens", "createSpeech", "createTranscription", "createTranslation",
  "createTextVideo", "createMultiImageVideo", "getUsage", "listUsageRecords", "createEmbeddings", "listModels",
  "createResponse", "countResponseInputTokens",
]
${JUDGED}

# A document that is not read within the timeout its caller chose, a millisecond perhaps, is answered with 504.
[[operations]]
include-operation-id = "parseDocument"
${JUDGED.replace(']', ', 504]')}
checks.not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 504]

# The same two reasons as above: one time before another, and one that is not over yet.
[[operations]]
include-operation-id = ["getGatewayUsage", "createKey"]
${JUDGED}
${GUARDED}

# A revoked key stays to be read, as what it was used for stays in the records.
[[operations]]
include-operation-id = ["getKey", "changeKey", "revokeKey"]
${JUDGED}
${GUARDED}
checks.use_after_free.enabled = false

[[operations]]
include-operation-id = ["listKeys", "listAuditRecords", "reloadConfiguration", "listChannels", "resetChannel", "backUpStore"]
${GUARDED}

# schemathesis speaks no WebSocket: what is no upgrade is answered with 426, before anything else is looked at, and
# missing_required_header knows no status but 401 where Authorization is missing (test/e2e/realtime-upgrade.e2e.spec.ts has all these).
[[operations]]
include-operation-id = "openRealtimeSession"
checks.positive_data_acceptance.expected-statuses = [426]
checks.negative_data_rejection.expected-statuses = [400, 401, 403, 404, 405, 426, 429]
checks.missing_required_header.enabled = false
`

const status = await withPython([SCHEMATHESIS], async (programOf, directory) => {
  const gateway = await startGateway()
  try {
    const file = join(directory, 'schemathesis.toml')
    await writeFile(file, configuration(gateway))
    const parameters = [
      ...['--config-file', file, 'run', `${gateway.url}/docs/openapi.json`, '--url', gateway.url],
      ...['--seed', values.seed, '--generation-database', 'none', '--continue-on-failure', '--no-color'],
      ...[
        '--max-examples',
        '25',
        '--max-time',
        String(MOST_SECONDS),
        '--request-timeout',
        '30',
        '--wait-for-schema',
        '30',
      ],
    ]
    return await exitOf(programOf('schemathesis'), parameters, { cwd: directory })
  } finally {
    await gateway.close()
  }
})
process.exitCode = status ?? 0
