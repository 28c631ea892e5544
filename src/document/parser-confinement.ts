import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** What confines a process that reads documents. */
export interface Confinement {
  /** Command in front of the process's own; empty where the system has none. */
  readonly wrapper: readonly string[]
  /** Whether the process runs under Node's permissions. */
  readonly hasPermissions: boolean
}

/**
 * New namespaces: of the network, in which there is no other machine and no port of this one, and of users, from which the kernel
 * lets nothing of processes outside be read: environment, memory, open files. The user stays the same, and so do its files.
 */
const NAMESPACES = ['--user', '--map-current-user', '--net', '--ipc']
const UNSHARE = ['/usr/bin/unshare', '/bin/unshare'].find((path) => existsSync(path))
const PROBE_MS = 2000

const isAllowed = (wrapper: readonly string[]): boolean => {
  const [program, ...parameters] = [...wrapper, '/bin/true']
  return spawnSync(program, parameters, { stdio: 'ignore', timeout: PROBE_MS }).status === 0
}

/** Tried once: the kernel, a container or its seccomp profile may refuse namespaces. */
function probe(): Confinement {
  const wrapper = UNSHARE === undefined ? [] : [UNSHARE, ...NAMESPACES]
  const hasNamespaces = wrapper.length > 0 && isAllowed(wrapper)
  // Node 22.13 and later; what Node 20 has is an experiment.
  const hasPermissions = process.allowedNodeEnvironmentFlags.has('--permission')
  return { wrapper: hasNamespaces ? wrapper : [], hasPermissions }
}

let known: Confinement | undefined

/** All that this host gives; it does not change while the gateway runs. */
export const confinement = (): Confinement => (known ??= probe())

/** What a process can do although it should not, for the log at start. */
export const missingConfinement = ({ wrapper, hasPermissions }: Confinement): string[] => [
  ...(wrapper.length > 0 ? [] : ['network', 'gateway_process']),
  ...(hasPermissions ? [] : ['files', 'programs']),
]

/**
 * Node's own confinement: no files but the engine's and its packages', no programs, no native code. The thread that watches the
 * process is allowed.
 */
export function permissionFlags(entry: string, { hasPermissions }: Confinement): string[] {
  if (!hasPermissions) return []
  const packages = ancestorsOf(entry)
    .map((folder) => join(folder, 'node_modules'))
    .filter((folder) => existsSync(folder))
  const readable = [dirname(dirname(entry)), ...packages]
  // The warning is about threads, of which the engine has one, and then starts no other.
  return [
    '--permission',
    '--allow-worker',
    '--disable-warning=SecurityWarning',
    ...readable.map((folder) => `--allow-fs-read=${join(folder, '*')}`),
  ]
}

function ancestorsOf(path: string): string[] {
  const parent = dirname(path)
  return parent === path ? [] : [parent, ...ancestorsOf(parent)]
}
