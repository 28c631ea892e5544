import { textOf } from '../server/json-value.js'
import { ServedLedger } from '../server/served-ledger.js'
import { startSimulator } from '../server/simulator-server.js'
import type { Simulator, SimulatorOptions } from '../server/simulator.js'
import { realClock, type TaskClock } from '../tasks/task-clock.js'
import { type HookOptions, HookSender, type SentHook } from '../tasks/webhooks.js'
import type { VidgenAccess } from './vidgen-access.js'
import { serveVidgen } from './vidgen-service.js'
import { callbackText, isOver, type VidgenStatus, type VidgenTask } from './vidgen-task.js'
import { type VidgenTaskMs, VidgenTasks } from './vidgen-tasks.js'

export interface VidgenSimulatorOptions extends SimulatorOptions {
  /** Time by which tasks proceed and videos are deleted. Default: the real one. */
  readonly clock?: TaskClock
  /** How long a task stays `submitted` and `processing`. Default 2 s and 4 s. */
  readonly taskMs?: VidgenTaskMs
  /** Time by which tokens are judged, in Unix milliseconds. Default: the real one, whatever `clock` says. */
  readonly tokenNowMs?: () => number
  /** What the names of all models begin with. Default `vidgen-`. */
  readonly modelPrefix?: string
  /** How `callback_url` is called. Default: unsigned, once, in order. */
  readonly callbacks?: HookOptions
}

/** A running simulator and its tasks, which outlive every caller. */
export interface VidgenSimulator extends Simulator {
  /** Every task made so far, oldest first. */
  readonly creates: readonly VidgenTask[]
  /** External ids that came a second time: each would have been paid for twice. */
  readonly duplicates: readonly string[]
  /** Callbacks sent so far, at most the last 1,000. */
  readonly callbacks: readonly SentHook[]
  /** Resolves when no callback is under way. */
  callbacksSent(): Promise<void>
  /** One state further: the task with this id or external id, or all that have not ended. */
  advance(id?: string): void
  /** Ends a task now. */
  settle(id: string, status: 'succeed' | 'failed'): void
  /** Shows a task in this state from now on, even one that lies behind it. */
  show(id: string, status: VidgenStatus): void
  /** From now on the task is unknown: 1203. */
  forget(id: string): void
}

const DEFAULT_TASK_MS = { submitted: 2000, processing: 4000 }

/**
 * Starts the video upstream: both kinds of tasks under `/v1/videos`, and the videos themselves. `access` says who may
 * call; without it every bearer but `bad` may. Words in a prompt that change the course of things: `vidgen-words.ts`.
 */
export async function startVidgenSimulator(
  access?: VidgenAccess,
  options: VidgenSimulatorOptions = {},
): Promise<VidgenSimulator> {
  const { clock = realClock, taskMs = DEFAULT_TASK_MS, tokenNowMs = Date.now, modelPrefix = 'vidgen-' } = options
  const hooks = new HookSender(options.callbacks)
  let url = ''
  const mediaUrl = (): string => url
  const { served = new ServedLedger() } = options
  const onChange = (task: VidgenTask): void => {
    if (task.status === 'succeed') served.add(textOf(task.fields['model_name']), { videos: 1 })
    const address = textOf(task.fields['callback_url'])
    if (address !== '') hooks.send(task.id, address, callbackText(task, url), isOver(task))
  }
  const tasks = new VidgenTasks({ clock, taskMs, onChange })
  const context = { access, modelPrefix, tokenNowMs, clock, tasks, mediaUrl }
  const simulator = await startSimulator((exchange) => serveVidgen(exchange, context), { ...options, served })
  url = simulator.url
  return withTasks(simulator, tasks, hooks)
}

function withTasks(simulator: Simulator, tasks: VidgenTasks, hooks: HookSender): VidgenSimulator {
  const closeServer = simulator.close.bind(simulator)
  return Object.assign(simulator, {
    creates: tasks.creates,
    duplicates: tasks.duplicates,
    callbacks: hooks.sent,
    callbacksSent: () => hooks.idle(),
    advance: tasks.advance.bind(tasks),
    settle: tasks.show.bind(tasks),
    show: tasks.show.bind(tasks),
    forget: tasks.forget.bind(tasks),
    close: async () => {
      tasks.close()
      await hooks.close()
      await closeServer()
    },
  })
}
