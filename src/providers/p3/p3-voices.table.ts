/** The six standard voices of the specification at P3: six different ones, of its system voices. */
export const P3_VOICES = {
  alloy: 'English_expressive_narrator',
  echo: 'male-qn-jingying',
  fable: 'female-tianmei',
  onyx: 'audiobook_male_1',
  nova: 'female-shaonv',
  shimmer: 'female-yujie',
} as const satisfies Readonly<Record<string, string>>
