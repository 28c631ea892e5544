/** The six standard voices and the presets of the same character; a channel's option `voices` is laid over them. */
const PRESETS: Readonly<Record<string, string>> = {
  alloy: 'zh_male_M392_conversation_wvae_bigtts',
  echo: 'zh_male_wenhao_mars_bigtts',
  fable: 'zh_female_tianmei_mars_bigtts',
  onyx: 'zh_male_zhibei_mars_bigtts',
  nova: 'zh_female_shuangkuaisisi_mars_bigtts',
  shimmer: 'zh_female_cancan_mars_bigtts',
}

/** The upstream's name of a voice: a standard voice by the tables, everything else as the caller wrote it. */
export function p2Voice(
  voice: string | { readonly id: string },
  voices: Readonly<Record<string, string>> = {},
): string {
  if (typeof voice !== 'string') return voice.id
  for (const table of [voices, PRESETS]) {
    // Own names only: `constructor` is a voice nobody has, not a member of every table.
    const preset = Object.hasOwn(table, voice) ? table[voice] : undefined
    if (preset !== undefined) return preset
  }
  return voice
}
