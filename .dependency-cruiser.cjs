/** Who may import whom. Each rule says why; docs/architecture.md draws the picture. */
const CAPABILITIES = 'audio|chat|messages|models|realtime|video|image|document|health|limits|keys|admin|metrics'
const UPSTREAMS = 'p1|p2|p3|p4|m1|vidgen|imggen|reader'

module.exports = {
  forbidden: [
    {
      name: 'no-circles',
      comment: 'A circle has no first reader. Move what both need to where both may look.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'no-orphans',
      comment: 'Nothing uses this file: delete it, or wire it up.',
      severity: 'error',
      from: { orphan: true, path: '^src/', pathNot: '\\.spec\\.ts$|^src/main\\.ts$' },
      to: {},
    },
    {
      name: 'capabilities-do-not-know-each-other',
      comment: 'A capability that needs another one needs a contract in common or tasks instead.',
      severity: 'error',
      from: { path: `^src/(${CAPABILITIES})/` },
      to: { path: `^src/(${CAPABILITIES})/`, pathNot: '^src/$1/' },
    },
    {
      name: 'capabilities-know-the-router-only',
      comment: 'A capability sees providers through ProviderRouter and the contracts, never a vendor or the routing.',
      severity: 'error',
      from: { path: `^src/(${CAPABILITIES})/` },
      to: {
        path: '^src/providers/',
        pathNot: '^src/providers/((provider-router|channel-reports)\\.ts|contracts/|providers\\.module\\.ts)',
      },
    },
    {
      name: 'usage-through-its-reports',
      comment: 'What was used is asked for in the words of the reports, not of the records behind them.',
      severity: 'error',
      from: { path: `^src/(${CAPABILITIES})/` },
      to: { path: '^src/usage/', pathNot: '^src/usage/(usage-reports|usage-query|usage\\.dto|usage\\.module)\\.ts$' },
    },
    {
      name: 'usage-knows-no-capability',
      comment: 'Whoever uses something tells UsageRecorder; usage asks nobody.',
      severity: 'error',
      from: { path: '^src/usage/', pathNot: '\\.spec\\.ts$' },
      to: { path: '^src/', pathNot: '^src/(usage|common|config)/' },
    },
    {
      name: 'tasks-through-their-contract',
      comment: 'Who needs durable tasks knows the Tasks contract and its types, not the engine or the store behind it.',
      severity: 'error',
      from: { path: `^src/(?!tasks/)`, pathNot: '\\.spec\\.ts$' },
      to: { path: '^src/tasks/', pathNot: '^src/tasks/(tasks|task|callback\\.repository|tasks\\.module)\\.ts$' },
    },
    {
      name: 'tasks-know-no-capability',
      comment: 'Tasks serve capabilities; they reach upstreams through ProviderRouter, like a capability.',
      severity: 'error',
      from: { path: '^src/tasks/', pathNot: '\\.spec\\.ts$' },
      to: {
        path: '^src/',
        pathNot: '^src/(tasks|common|config)/|^src/providers/(provider-router\\.ts|contracts/|providers\\.module\\.ts)',
      },
    },
    {
      name: 'sql-in-repositories',
      comment: 'Whoever needs a row asks a repository in the words of the domain.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/common/database/|\\.repository\\.ts$|\\.spec\\.ts$' },
      to: { path: 'node_modules/(kysely|pg|@electric-sql)/' },
    },
    {
      name: 'only-modules-name-the-providers-module',
      comment: 'Concrete classes cross a border in *.module.ts alone.',
      severity: 'error',
      from: { path: '^src/', pathNot: '\\.module\\.ts$' },
      to: { path: '^src/providers/providers\\.module\\.ts$' },
    },
    {
      name: 'upstreams-do-not-know-each-other',
      comment: 'What two upstreams share belongs into common, under the name of the dialect.',
      severity: 'error',
      from: { path: `^src/providers/(${UPSTREAMS})/` },
      to: { path: `^src/providers/(${UPSTREAMS})/`, pathNot: '^src/providers/$1/' },
    },
    {
      name: 'upstreams-know-contracts-common-and-config-only',
      comment: 'A provider translates; it knows no capability and no routing.',
      severity: 'error',
      from: { path: `^src/providers/(${UPSTREAMS})/`, pathNot: '\\.spec\\.ts$' },
      to: { path: '^src/', pathNot: `^src/(providers/(contracts|${UPSTREAMS})|common|config)/` },
    },
    {
      name: 'contracts-are-types',
      comment: 'A contract describes; it may name types of common and config, nothing else.',
      severity: 'error',
      from: { path: '^src/providers/contracts/' },
      to: { path: '^src/', pathNot: '^src/(providers/contracts|common|config)/' },
    },
    {
      name: 'common-knows-common-and-config-only',
      comment: 'The foundation does not lean on what stands on it.',
      severity: 'error',
      from: { path: '^src/common/', pathNot: '\\.spec\\.ts$' },
      to: { path: '^src/', pathNot: '^src/(common|config)/' },
    },
    {
      name: 'config-knows-itself-only',
      comment: 'The configuration is read before anything else exists.',
      severity: 'error',
      from: { path: '^src/config/', pathNot: '\\.spec\\.ts$' },
      to: { path: '^src/', pathNot: '^src/config/' },
    },
    {
      name: 'sandbox-is-a-stranger',
      comment: 'Simulators share no code with the adapters they judge, and nothing but main and tests starts them.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(sandbox/|main\\.ts$)|\\.spec\\.ts$' },
      to: { path: '^src/sandbox/' },
    },
    {
      name: 'simulators-know-nothing-of-the-gateway',
      comment: 'A simulator that borrows from the gateway repeats its mistakes instead of finding them.',
      severity: 'error',
      from: { path: '^src/sandbox/', pathNot: '\\.spec\\.ts$|^src/sandbox/sandbox\\.module\\.ts$' },
      to: { path: '^src/', pathNot: '^src/sandbox/' },
    },
    {
      name: 'the-engine-knows-itself-only',
      comment:
        'Documents are read in a process of its own, which gets bytes and gives text: no gateway, no network, no files.',
      severity: 'error',
      from: { path: '^src/document/engine/', pathNot: '\\.(spec|process)\\.ts$' },
      to: {
        path: '^src/(?!document/engine/)|node_modules/(@nestjs|undici|axios|ws|pino|pg|kysely)/|^(fs|net|http|https|child_process|worker_threads|dns|tls)$',
        pathNot: '^src/document/engine/',
      },
    },
    {
      name: 'the-engine-through-its-contract',
      comment:
        'The gateway never reads a document itself: it knows what the engine takes and gives, and the pool that runs it.',
      severity: 'error',
      from: { path: '^src/(?!document/engine/)', pathNot: '\\.spec\\.ts$' },
      to: {
        path: '^src/document/engine/',
        pathNot: '^src/document/engine/(engine-contract|engine-frames|engine-protocol)\\.ts$',
      },
    },
    {
      name: 'counters-behind-the-gate',
      comment: 'Limits are counted in one place alone; whoever has a limit of its own asks the gate.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/common/limits/' },
      to: { path: 'node_modules/(rate-limiter-flexible|ioredis)/' },
    },
    {
      name: 'traces-are-sent-from-one-place',
      comment:
        'A gateway without a collector loads none of the packages; one file imports them, and is imported when needed.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/common/observability/tracing/span-sender\\.ts$' },
      to: { path: 'node_modules/@opentelemetry/' },
    },
    {
      name: 'the-sender-of-traces-is-imported-when-needed',
      comment: 'An import at the top of a file would load the packages into every gateway.',
      severity: 'error',
      from: { path: '^src/', pathNot: '\\.spec\\.ts$' },
      to: {
        path: '^src/common/observability/tracing/span-sender\\.ts$',
        dependencyTypesNot: ['dynamic-import', 'type-only'],
      },
    },
    {
      name: 'http-clients-behind-the-door',
      comment: 'Upstream calls go through common/http or a provider; services and controllers have no HTTP.',
      severity: 'error',
      from: { path: '^src/', pathNot: `^src/(common|sandbox|providers/(${UPSTREAMS}))/|\\.spec\\.ts$` },
      // A socket that is handed over has a type, wherever it goes.
      to: { path: 'node_modules/(undici|axios|ws)/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'express-in-controllers-and-common',
      comment: 'A service knows calls and answers, not requests and responses.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/common/|\\.(controller|decorator)\\.ts$|\\.spec\\.ts$' },
      to: { path: 'node_modules/(@types/)?express/' },
    },
    {
      name: 'no-unlisted-packages',
      comment: 'Import only what package.json names; transitive packages come and go.',
      severity: 'error',
      from: { path: '^src/', pathNot: '\\.spec\\.ts$' },
      to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown', 'npm-dev'], dependencyTypesNot: ['type-only'] },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    combinedDependencies: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
}
