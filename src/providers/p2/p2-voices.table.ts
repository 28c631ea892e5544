import { upstreamVoice, type VoiceTable } from '../../dialects/upstream-voice.js'

/** The six standard voices and the presets of the same character; a channel's option `voices` is laid over them. */
const P2_VOICES: VoiceTable = {
  alloy: 'zh_male_M392_conversation_wvae_bigtts',
  echo: 'zh_male_wenhao_mars_bigtts',
  fable: 'zh_female_tianmei_mars_bigtts',
  onyx: 'zh_male_zhibei_mars_bigtts',
  nova: 'zh_female_shuangkuaisisi_mars_bigtts',
  shimmer: 'zh_female_cancan_mars_bigtts',
}

/** P2's name of a voice. */
export const p2Voice = (voice: string | { readonly id: string }, ofChannel?: VoiceTable): string =>
  upstreamVoice(voice, P2_VOICES, ofChannel)
