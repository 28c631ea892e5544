/** Names of voices, and what the upstream calls them. */
export type VoiceTable = Readonly<Record<string, string>>

/**
 * The upstream's name of a voice: by the channel's own table, then by the provider's; any other name, and every id, is
 * the upstream's own and stays as the caller wrote it.
 */
export function upstreamVoice(
  voice: string | { readonly id: string },
  standard: VoiceTable,
  ofChannel: VoiceTable = {},
): string {
  if (typeof voice !== 'string') return voice.id
  for (const table of [ofChannel, standard]) {
    // Own names only: `constructor` is a voice nobody has, not a member of every table.
    if (Object.hasOwn(table, voice)) return table[voice] ?? voice
  }
  return voice
}
