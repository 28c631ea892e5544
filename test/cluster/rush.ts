/** Callers at once; each makes its next call when its last one is over. */
export const RUSH_CALLERS = 25

/** What one call of a rush came to, and whatever else its test wants to know of it. */
export interface RushAnswer {
  readonly status: number
}

type Call<Answer extends RushAnswer> = (number: number) => Promise<Answer>

/** So many calls that all come at once, as fast as they go. */
export async function rush<Answer extends RushAnswer>(calls: number, call: Call<Answer>): Promise<readonly Answer[]> {
  const answers: Answer[] = []
  let begun = 0
  const caller = async (): Promise<void> => {
    while (begun < calls) answers.push(await call(begun++))
  }
  await Promise.all(Array.from({ length: RUSH_CALLERS }, caller))
  return answers
}

/**
 * The same until every caller has been refused once. The last of them asks when nobody else does, so that nothing is
 * reserved for others any more: what is not used then was withheld.
 */
export async function rushUntilRefused<Answer extends RushAnswer>(call: Call<Answer>): Promise<readonly Answer[]> {
  const answers: Answer[] = []
  let begun = 0
  const caller = async (): Promise<void> => {
    let answer: Answer
    do {
      answer = await call(begun++)
      answers.push(answer)
    } while (answer.status === 200)
  }
  await Promise.all(Array.from({ length: RUSH_CALLERS }, caller))
  return answers
}

export const ofStatus = <Answer extends RushAnswer>(answers: readonly Answer[], status: number): readonly Answer[] =>
  answers.filter((answer) => answer.status === status)
