import { startImggenSimulator } from './imggen/imggen.simulator.js'
import { startM1Simulator } from './m1/m1.simulator.js'
import { OPEN_MODEL } from './p1/chat-models.js'
import { startP1Simulator } from './p1/p1.simulator.js'
import { startP2Simulator } from './p2/p2.simulator.js'
import { startP3Simulator } from './p3/p3.simulator.js'
import { startP4Simulator } from './p4/p4.simulator.js'
import { startCallbackReceiver } from './tasks/webhooks.js'
import { startVidgenSimulator } from './vidgen/vidgen.simulator.js'

/** Addresses and ids for the walk through tasks and callbacks in docs/sandbox.md. */
export interface SandboxTasks {
  /** Address of the place that callbacks may be sent to; without a path. */
  readonly receiverUrl: string
  /** Address and secret of the image upstream, which alone can make image tasks. */
  readonly imageUrl: string
  readonly imageSecret: string
  /** A task that has ended. */
  readonly imageTaskId: string
}

/** The text on the terminal without a configuration: address, key, and three requests to try. */
function sandboxBanner(address: string, key: string, tasks: SandboxTasks): string {
  const header = `-H 'Authorization: Bearer ${key}'`
  const json = `-H 'Content-Type: application/json'`
  return `
Multi-Model Gateway listens at ${address}
SANDBOX MODE: no gateway.yaml was found. Every upstream is a simulator inside this process; nothing leaves this machine.

  base URL  ${address}/v1
  API key   ${key}

Try:
  curl ${address}/v1/chat/completions ${header} ${json} \\
    -d '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hello!"}]}'

  curl ${address}/v1/audio/speech ${header} ${json} \\
    -d '{"model":"tts-1","voice":"alloy","input":"Hello from the gateway."}' -o hello.mp3

  curl ${address}/v1/audio/transcriptions ${header} \\
    -F file=@hello.mp3 -F model=whisper-1

For the walk through video and image tasks in docs/sandbox.md:
  callback_url      ${tasks.receiverUrl}/hook
  what came there   ${tasks.receiverUrl}/received
  callback secret   ${SANDBOX_CALLBACK_SECRET}
  or your receiver  http://127.0.0.1:<port>/, verified with that secret
  image task        ${tasks.imageTaskId}
  new image tasks   POST ${tasks.imageUrl}/mj/submit/imagine with the header mj-api-secret: ${tasks.imageSecret}

Copy gateway.example.yaml to gateway.yaml to serve real upstreams.

`
}

/** The only key of the sandbox; it gives access to the simulators of this process only. */
export const SANDBOX_KEY = 'sandbox-demo-key'

/** Signs the callbacks of the sandbox, which are sent within this machine only. */
export const SANDBOX_CALLBACK_SECRET = `whsec_${Buffer.from('sandbox demo callback secret').toString('base64')}`

/** An image task that has already ended, for docs/sandbox.md. */
export const SANDBOX_IMAGE_TASK = '1750000000000123'

/** Credentials the simulators demand of the gateway, so that the sandbox shows the same separation as production. */
const UPSTREAM_KEY = 'sandbox-upstream-key'
const P2_KEY = 'sandbox-app|sandbox-upstream-key'
const VIDGEN_KEYS = { accessKey: 'sandbox-access', secretKey: 'sandbox-secret' }

const LOCAL_ORIGINS = ['localhost', '127.0.0.1', '[::1]'].flatMap((host) => [`http://${host}:*`, `https://${host}:*`])

/** The catalogue knows no models of P2; any name will do. */
const P2_MODEL = 'p2-tts'

export interface Sandbox {
  /** As `gateway.yaml` would be written: one channel to each simulator. JSON is YAML. */
  readonly configText: string
  readonly banner: (address: string) => string
  readonly close: () => Promise<void>
}

/** Every simulator on a loopback port of its own, and a place for callbacks. */
async function startServers() {
  const options = { apiKey: UPSTREAM_KEY }
  const [p1, p2, p3, p4, m1, vidgen, imggen, receiver] = await Promise.all([
    startP1Simulator(options),
    startP2Simulator({ apiKey: P2_KEY }),
    startP3Simulator(options),
    startP4Simulator(options),
    startM1Simulator(options),
    startVidgenSimulator(VIDGEN_KEYS),
    startImggenSimulator(options),
    startCallbackReceiver({ secret: SANDBOX_CALLBACK_SECRET }),
  ])
  imggen.submit('a red kite over the sea', { id: SANDBOX_IMAGE_TASK })
  imggen.finish(SANDBOX_IMAGE_TASK)
  return { p1, p2, p3, p4, m1, vidgen, imggen, receiver }
}

type Servers = Awaited<ReturnType<typeof startServers>>

function channelsTo({ p1, p2, p3, p4, m1, vidgen, imggen }: Servers): readonly object[] {
  const vidgenPair = `${VIDGEN_KEYS.accessKey}|${VIDGEN_KEYS.secretKey}`
  return [
    { id: 'sandbox-p1', provider: 'p1', baseUrl: p1.url, credentials: UPSTREAM_KEY },
    { id: 'sandbox-p2', provider: 'p2', baseUrl: p2.url, credentials: P2_KEY, models: [P2_MODEL] },
    { id: 'sandbox-p3', provider: 'p3', baseUrl: p3.url, credentials: UPSTREAM_KEY },
    // P1 serves the shared standard model first, as its subtitles and words come from the upstream itself.
    { id: 'sandbox-p4', provider: 'p4', baseUrl: `${p4.url}/openai`, credentials: UPSTREAM_KEY, priority: 1 },
    { id: 'sandbox-m1', provider: 'm1', baseUrl: m1.url, credentials: UPSTREAM_KEY },
    { id: 'sandbox-vidgen', provider: 'vidgen', baseUrl: vidgen.url, credentials: vidgenPair },
    { id: 'sandbox-imggen', provider: 'imggen', baseUrl: imggen.url, credentials: UPSTREAM_KEY },
  ]
}

/** A model of an operator's own server: it speaks chat alone, so that everything else is translated to it. */
export const OPEN_MODEL_ROW = {
  id: OPEN_MODEL,
  class: 'chat',
  providers: ['p1'],
  dialects: ['chat'],
  facts: {
    thinking: 'adaptive',
    efforts: ['low', 'medium', 'high'],
    systemRole: 'system',
    reasoningField: 'reasoning_content',
    maxOutputTokens: 16_384,
  },
}

/** Starts every simulator and gives the configuration with one channel to each, for a gateway that listens on `host`. */
export async function startSandbox(host: string): Promise<Sandbox> {
  const servers = await startServers()
  const all = Object.values(servers)
  const configText = JSON.stringify({
    // Several sandboxes on one machine must not be in each other's way. Pages of this machine may use its public key.
    server: { host, metricsPort: 0, cors: { allowedOrigins: LOCAL_ORIGINS } },
    auth: { keys: [{ id: 'sandbox', key: SANDBOX_KEY }] },
    channels: channelsTo(servers),
    models: [OPEN_MODEL_ROW],
    // Some simulators answer with URLs of their own, which are as private as they are; so is the place for callbacks.
    ssrf: { allow: all.map(({ url }) => new URL(url).host) },
    // A task takes some seconds here, not minutes.
    tasks: { pollIntervalMs: 1000 },
    callbacks: { secret: SANDBOX_CALLBACK_SECRET },
    // The key is known to the world.
    documents: { fetch: false },
  })
  const tasks = {
    receiverUrl: servers.receiver.url,
    imageUrl: servers.imggen.url,
    imageSecret: UPSTREAM_KEY,
    imageTaskId: SANDBOX_IMAGE_TASK,
  }
  return {
    configText,
    banner: (address) => sandboxBanner(address, SANDBOX_KEY, tasks),
    close: async () => {
      await Promise.all(all.map((server) => server.close()))
    },
  }
}
