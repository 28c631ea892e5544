const { readdirSync } = require('node:fs')

/** Who may import whom: one rule per layer, from the bottom up. docs/architecture.md draws the picture. */

/** From the bottom up; each folder may import those before it, and itself. */
const BELOW_CAPABILITIES = [
  ['config', 'gateway.yaml and the environment come before everything else.'],
  ['core', 'The vocabulary of the gateway leans on the types of settings alone.'],
  ['observability', 'Logs, metrics and traces know what happened, not who made it happen.'],
  ['upstream', 'Everything outbound.'],
  ['storage', 'The store knows rows, not their meaning.'],
  ['dialects', 'Wire formats that endpoints and providers share.'],
  ['limits', 'Rate limits and quotas.'],
  ['auth', 'Keys: read, verified, cached, stored.'],
  ['usage', 'Records of use; other layers report to them.'],
  ['server', 'Everything inbound.'],
  ['overload', 'Load shedding.'],
  ['providers', 'A provider translates; it knows no capability and no routing.'],
  ['routing', 'Model to channel.'],
  ['tasks', 'Durable jobs reach upstreams through the router, like a capability.'],
]
const ABOVE_CAPABILITIES = [
  ['admin', 'The operators’ API and the key command.'],
  ['app', 'Builds the application.'],
]

/** Every other folder is a capability. */
const LAYER_NAMES = new Set([...BELOW_CAPABILITIES, ...ABOVE_CAPABILITIES].map(([name]) => name))
const CAPABILITIES = readdirSync('src', { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !LAYER_NAMES.has(entry.name))
  .map(({ name }) => name)
  .join('|')

const LAYERS = [...BELOW_CAPABILITIES, [CAPABILITIES, 'Capabilities do not know each other.'], ...ABOVE_CAPABILITIES]

const layerRules = LAYERS.map(([folder, comment], index) => {
  const below = LAYERS.slice(0, index).map(([name]) => name)
  return {
    name: `layer-${folder.includes('|') ? 'capabilities' : folder}`,
    comment: `${comment} Imports point to lower layers only.`,
    severity: 'error',
    from: { path: `^src/(${folder})/`, pathNot: '\\.spec\\.ts$' },
    to: { path: '^src/', pathNot: `^src/(${[...below, '$1'].join('|')})/` },
  }
})

module.exports = {
  forbidden: [
    {
      name: 'no-circles',
      comment: 'A circle has no first reader. Move what both need to a lower file.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'no-orphans',
      comment: 'Nothing uses this file: delete it, or wire it up.',
      severity: 'error',
      from: {
        orphan: true,
        path: '^(src|packages)/',
        pathNot: '\\.spec\\.ts$|^src/(?:main|serve)\\.ts$|^packages/document-engine/src/watchdog\\.ts$',
      },
      to: {},
    },
    ...layerRules,
    {
      name: 'core-knows-types-of-settings',
      comment: 'The vocabulary describes settings; it reads none.',
      severity: 'error',
      from: { path: '^src/core/', pathNot: '\\.spec\\.ts$' },
      to: { path: '^src/config/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'capabilities-know-the-router-only',
      comment:
        'A capability sees providers through ProviderRouter, the relay of JSON requests and their contract, never a vendor.',
      severity: 'error',
      from: { path: `^src/(${CAPABILITIES}|admin|tasks)/`, pathNot: '\\.(spec|module)\\.ts$' },
      to: {
        path: '^src/(providers|routing)/',
        pathNot: '^src/(providers/contract|routing/(router|json-relay\\.service))\\.ts$',
      },
    },
    {
      name: 'providers-do-not-know-each-other',
      comment: 'What two upstreams share belongs into dialects/ or upstream/, under the name of the wire format.',
      severity: 'error',
      from: { path: '^src/providers/([^/]+)/' },
      to: { path: '^src/providers/[^/]+/', pathNot: '^src/providers/$1/' },
    },
    {
      name: 'sql-in-repositories',
      comment: 'A service asks a repository in the words of the domain.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/storage/|\\.pg\\.ts$|\\.spec\\.ts$' },
      to: { path: 'node_modules/(kysely|pg|@electric-sql)/' },
    },
    {
      name: 'modules-choose-implementations',
      comment: 'Only *.module.ts, and the key command, which is no Nest application, name the SQL behind a repository.',
      severity: 'error',
      from: { path: '^src/', pathNot: '\\.module\\.ts$|\\.pg\\.ts$|\\.spec\\.ts$|^src/admin/cli/key-store\\.ts$' },
      to: { path: '\\.pg\\.ts$' },
    },
    {
      name: 'packages-know-nothing-of-the-gateway',
      comment: 'A simulator that borrows from the gateway repeats its mistakes; the engine gets bytes and gives text.',
      severity: 'error',
      from: { path: '^packages/', pathNot: '\\.spec\\.ts$' },
      to: { path: '^src/' },
    },
    {
      name: 'packages-do-not-know-each-other',
      comment: 'Each package stands for itself.',
      severity: 'error',
      from: { path: '^packages/([^/]+)/', pathNot: '\\.spec\\.ts$' },
      to: { path: '^packages/', pathNot: '^packages/$1/' },
    },
    {
      name: 'sandbox-is-a-stranger',
      comment: 'Nothing but main and tests starts simulators.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(?:main|serve)\\.ts$|\\.spec\\.ts$' },
      to: { path: '^packages/sandbox/' },
    },
    {
      name: 'engine-is-sealed',
      comment: 'Documents are read in a process of its own, which gets bytes and gives text: no network and no files.',
      severity: 'error',
      from: { path: '^packages/document-engine/', pathNot: '\\.spec\\.ts$|/(process|watchdog)\\.ts$' },
      to: {
        path: 'node_modules/(@nestjs|undici|axios|ws|pino|pg|kysely)/|^(fs|net|http|https|child_process|worker_threads|dns|tls)$',
      },
    },
    {
      name: 'engine-through-its-protocol',
      comment: 'The gateway never reads a document itself: it knows the engine’s messages and the pool that runs it.',
      severity: 'error',
      from: { path: '^src/', pathNot: '\\.spec\\.ts$' },
      to: {
        path: '^packages/document-engine/',
        pathNot: '^packages/document-engine/src/(model/document|protocol)\\.ts$',
      },
    },
    {
      name: 'counters-behind-limits',
      comment: 'Limits are counted in one place alone; a layer that has a limit of its own asks RateLimiter.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/limits/' },
      to: { path: 'node_modules/(rate-limiter-flexible|ioredis)/' },
    },
    {
      name: 'opentelemetry-in-one-file',
      comment:
        'A gateway without a collector loads none of the packages; one file imports them, and is imported when needed.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/observability/otlp-exporter\\.ts$' },
      to: { path: 'node_modules/@opentelemetry/' },
    },
    {
      name: 'otlp-exporter-is-imported-when-needed',
      comment: 'An import at the top of a file would load the packages into every gateway.',
      severity: 'error',
      from: { path: '^src/', pathNot: '\\.spec\\.ts$' },
      to: { path: '^src/observability/otlp-exporter\\.ts$', dependencyTypesNot: ['dynamic-import', 'type-only'] },
    },
    {
      name: 'http-clients-in-upstream',
      comment:
        'Upstream calls go through upstream/ or a provider; services and controllers have no HTTP client. The key command ' +
        'is no part of a gateway that runs: it asks one (docs/decisions/0025).',
      severity: 'error',
      from: {
        path: '^src/',
        pathNot: '^src/(upstream|server|providers)/|^src/admin/cli/key-client\\.ts$|\\.spec\\.ts$',
      },
      // A socket that is handed over has a type, wherever it goes.
      to: { path: 'node_modules/(undici|axios|ws)/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'express-in-server',
      comment: 'A service knows calls and answers, not requests and responses; routes.ts reads the router’s table.',
      severity: 'error',
      from: {
        path: '^src/',
        pathNot: '^src/(server/|observability/routes\\.ts$)|\\.(controller|guard|dto)\\.ts$|\\.spec\\.ts$',
      },
      to: { path: 'node_modules/(@types/)?express/' },
    },
    {
      name: 'no-unlisted-packages',
      comment: 'Import only what package.json names; transitive packages come and go.',
      severity: 'error',
      from: { path: '^(src|packages/[^/]+/src)/', pathNot: '\\.spec\\.ts$' },
      // What a package names itself, the root may name for tests as well.
      to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown', 'npm-dev'], dependencyTypesNot: ['type-only', 'npm'] },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^packages/[^/]+/dist/' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    combinedDependencies: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['@multi-model-gateway/source', 'import', 'require', 'node', 'default', 'types'],
    },
  },
}
