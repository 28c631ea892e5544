/** Where a walk through tasks and callbacks finds what it needs beside the gateway. */
export interface SandboxTasks {
  /** Address of the place that callbacks may be sent to; without a path. */
  readonly receiverUrl: string
  /** Address and secret of the image upstream, which alone can make image tasks. */
  readonly imageUrl: string
  readonly imageSecret: string
  /** A task that has ended. */
  readonly imageTaskId: string
}

/** What the terminal shows when there is no configuration: where, with which key, and three calls to try. */
export function sandboxBanner(address: string, key: string, tasks: SandboxTasks): string {
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

For the walk through video and image tasks in README.md:
  callback_url      ${tasks.receiverUrl}/hook
  what came there   ${tasks.receiverUrl}/received
  image task        ${tasks.imageTaskId}
  new image tasks   POST ${tasks.imageUrl}/mj/submit/imagine with the header mj-api-secret: ${tasks.imageSecret}

Copy gateway.example.yaml to gateway.yaml to serve real upstreams.

`
}
