import { afterAll, expect } from '@jest/globals'
import { rm } from 'node:fs/promises'
import { startImggenSimulator, type ImggenSimulator } from '@multi-model-gateway/sandbox/imggen/imggen.simulator.js'
import { startVidgenSimulator } from '@multi-model-gateway/sandbox/vidgen/vidgen.simulator.js'
import { dataDirectory } from '../support/stores.js'
import { imagePath, VIDGEN_ACCESS, VIDGEN_CREDENTIALS } from '../support/task-gateways.js'
import { videoText } from '../support/video-caller.js'
import { describeProvider } from './provider.contract.js'
import { TASK_CODES } from './provider-lab.js'

const KEY = 'canary4f1d7c0Qz83Lw'
const directories: string[] = []

const newDirectory = async (): Promise<string> => {
  const directory = await dataDirectory()
  directories.push(directory)
  return directory
}
afterAll(async () => {
  for (const directory of directories) await rm(directory, { recursive: true, force: true })
})

const UNKNOWN = '"no_such_field" : {"n":12345678901234567890, "e":1E3}'

describeProvider('video by vidgen', {
  provider: 'vidgen',
  credentials: VIDGEN_CREDENTIALS,
  start: () => startVidgenSimulator(VIDGEN_ACCESS, { taskMs: 'manual' }),
  dataDirectory: newDirectory,
  forms: (['text2video', 'multi-image2video'] as const).map((kind) => ({
    name: kind,
    errors: TASK_CODES,
    request: () => ({ path: `/vidgen/v1/videos/${kind}`, body: videoText(kind) }),
    expectAnswer: ({ text }) => {
      expect(JSON.parse(text)).toMatchObject({ code: 0, data: { task_status: 'submitted' } })
    },
    unknownFields: {
      request: { path: `/vidgen/v1/videos/${kind}`, body: videoText(kind).replace(/}$/, `, ${UNKNOWN}}`) },
      arrives: UNKNOWN,
    },
    // An upstream that may have made a task is not followed by another, which would make it twice.
    movesOnAfter: ['refusedKey', 'busy'],
  })),
})

describeProvider('images by imggen', {
  provider: 'imggen',
  credentials: KEY,
  start: () => startImggenSimulator({ apiKey: KEY, stepMs: 'manual' }),
  forms: (['fetch', 'image-seed'] as const).map((question) => ({
    name: question,
    errors: TASK_CODES,
    request: (upstream) => {
      const simulator = upstream as ImggenSimulator
      const id = simulator.submit('a red kite')
      simulator.finish(id)
      return { method: 'GET', path: imagePath(id, question) }
    },
    expectAnswer: ({ text }) => {
      expect(JSON.parse(text)).toMatchObject({ status: 'SUCCESS' })
    },
    // Only the channel where a task was made knows it.
    asksAll: true,
    ...(question === 'image-seed' ? { isPatient: true } : {}),
  })),
})
