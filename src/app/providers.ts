import type { ProviderManifest } from '../providers/contract.js'
import { IMGGEN_MANIFEST } from '../providers/imggen/imggen-image.js'
import { M1_MANIFEST } from '../providers/m1/m1-messages.js'
import { P1_MANIFEST } from '../providers/p1/p1.manifest.js'
import { P2_MANIFEST } from '../providers/p2/p2.manifest.js'
import { P3_MANIFEST } from '../providers/p3/p3-speech.js'
import { P4_MANIFEST } from '../providers/p4/p4-transcription.js'
import { READER_MANIFEST } from '../providers/reader/reader-document.js'
import { VIDGEN_MANIFEST } from '../providers/vidgen/vidgen-video.js'

/** Every upstream of the gateway, in the order in which messages name them. */
export const PROVIDERS: readonly ProviderManifest[] = [
  P1_MANIFEST,
  P2_MANIFEST,
  P3_MANIFEST,
  P4_MANIFEST,
  M1_MANIFEST,
  VIDGEN_MANIFEST,
  IMGGEN_MANIFEST,
  READER_MANIFEST,
]
