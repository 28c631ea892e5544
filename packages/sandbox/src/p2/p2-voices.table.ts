/** The presets relays use for the six standard voices, and listed alternatives with the same character. */
export const P2_VOICES: readonly string[] = [
  'zh_male_M392_conversation_wvae_bigtts',
  'zh_male_wenhao_mars_bigtts',
  'zh_female_tianmei_mars_bigtts',
  'zh_male_zhibei_mars_bigtts',
  'zh_female_shuangkuaisisi_mars_bigtts',
  'zh_female_cancan_mars_bigtts',
  'zh_male_xudong_conversation_wvae_bigtts',
  'zh_male_wenrouxiaoge_mars_bigtts',
  'zh_male_yuanboxiaoshu_moon_bigtts',
  'zh_female_tianmeitaozi_mars_bigtts',
  'zh_female_tianmeixiaoyuan_moon_bigtts',
  'zh_female_zhixingnvsheng_mars_bigtts',
  'zh_male_wennuanahu_moon_bigtts',
  'zh_male_yangguangqingnian_moon_bigtts',
  'zh_male_qingshuangnanda_mars_bigtts',
  'zh_female_shuangkuaisisi_moon_bigtts',
  'zh_female_shuangkuaisisi_emo_v2_mars_bigtts',
]

/** A cloned voice, which lives in a cluster of its own. */
export const CLONED_VOICE = /^S_\w+$/
