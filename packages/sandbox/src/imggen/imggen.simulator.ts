import { type Simulator, type SimulatorOptions, startSimulator } from '../server/simulator-server.js'
import { realClock, type TaskClock } from '../tasks/task-clock.js'
import { type HookOptions, HookSender, type SentHook } from '../tasks/webhooks.js'
import { type ImggenContext, serveImggen } from './imggen-routes.js'
import { type ImggenOrder, type ImggenTask, ImggenTasks, type ImggenVariant, isOver, taskText } from './imggen-tasks.js'

export interface ImggenSimulatorOptions extends SimulatorOptions {
  /** The only accepted `mj-api-secret`. Default: the check is off. */
  readonly apiKey?: string
  /** Time by which tasks proceed and slow seeds arrive. Default: the real one. */
  readonly clock?: TaskClock
  /** How long each step of a task lasts; `manual`: until a test moves it. Default 1 s. */
  readonly stepMs?: number | 'manual'
  /** Which member of the family it is: shape of the task object, and the answer for an unknown task. Default `T`. */
  readonly variant?: ImggenVariant
  /** How variant `N` answers the fetch of an unknown task: with an empty body (default) or with `null`. */
  readonly unknown?: 'empty' | 'null'
  /** What answers image-seed: the form of a submit with the seed alone (default), or the task object with the seed. */
  readonly seed?: 'result' | 'task'
  /** How long image-seed takes. Default 0. */
  readonly seedDelayMs?: number
  /** `list-by-condition` also returns a task that was not asked for. Default false. */
  readonly listsOthers?: boolean
  /** How `notifyHook` is called. Default: once, in order. */
  readonly hooks?: HookOptions
}

/** A running simulator and its tasks. */
export interface ImggenSimulator extends Simulator {
  /** Makes a task as `POST /mj/submit/imagine` does, for any words of the prompt, and returns its id. */
  submit(prompt: string, more?: Omit<ImggenOrder, 'prompt'>): string
  /** One step on: the task with this id, or all. */
  advance(id?: string): void
  /** To the end of its timeline. */
  finish(id: string): void
  /** From now on the task is unknown. */
  forget(id: string): void
  /** Notifications sent so far, at most the last 1,000. */
  readonly notifications: readonly SentHook[]
  /** Resolves when no notification is under way. */
  notificationsSent(): Promise<void>
}

/**
 * Starts the image upstream: submit, fetch, seed and list under `/mj`, and the pictures themselves. Tasks go NOT_START,
 * SUBMITTED, IN_PROGRESS (0 %, 31 %, 62 %, 93 %, with another preview each), SUCCESS. Words in a prompt:
 *
 * | Word | Effect |
 * |---|---|
 * | `#banned`, `#full` | submit answers code 24 or 23 and makes no task |
 * | `#queue` | submit answers code 22 with the task's id |
 * | `#modal` | submit answers code 21; the task stays in MODAL until `POST /mj/submit/modal` |
 * | `#fail` | the task fails after 31 % |
 * | `#stuck` | the task stays at 31 % for ever |
 * | `#null` | a fetch of the task answers 200 with `null` |
 * | `#html` and the others of `faults.ts`, as the first word | what fetch and image-seed of the task suffer |
 */
export async function startImggenSimulator(options: ImggenSimulatorOptions = {}): Promise<ImggenSimulator> {
  const { clock = realClock, stepMs = 1000, variant = 'T' } = options
  const hooks = new HookSender(options.hooks)
  let url = ''
  const onChange = (task: ImggenTask): void => {
    if (task.notifyHook !== '') hooks.send(task.id, task.notifyHook, taskText(task, variant, url), isOver(task))
  }
  const tasks = new ImggenTasks({ clock, stepMs, onChange })
  const context: ImggenContext = {
    apiKey: options.apiKey,
    variant,
    unknown: options.unknown ?? 'empty',
    seed: options.seed ?? 'result',
    seedDelayMs: options.seedDelayMs ?? 0,
    listsOthers: options.listsOthers ?? false,
    clock,
    tasks,
    imageUrl: () => url,
  }
  const simulator = await startSimulator((exchange) => serveImggen(exchange, context), options)
  url = simulator.url
  return withTasks(simulator, tasks, hooks)
}

function withTasks(simulator: Simulator, tasks: ImggenTasks, hooks: HookSender): ImggenSimulator {
  const closeServer = simulator.close.bind(simulator)
  return Object.assign(simulator, {
    submit: (prompt: string, more: Omit<ImggenOrder, 'prompt'> = {}) => tasks.submit({ ...more, prompt }).id,
    advance: tasks.advance.bind(tasks),
    finish: tasks.finish.bind(tasks),
    forget: tasks.forget.bind(tasks),
    notifications: hooks.sent,
    notificationsSent: () => hooks.idle(),
    close: async () => {
      tasks.close()
      await hooks.close()
      await closeServer()
    },
  })
}
