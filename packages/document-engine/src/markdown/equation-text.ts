/** Characters of mathematics and their TeX commands, in pairs. */
const COMMANDS: ReadonlyMap<string, string> = pairs(
  'α alpha β beta γ gamma δ delta ε varepsilon ϵ epsilon ζ zeta η eta θ theta ϑ vartheta ι iota κ kappa λ lambda ' +
    'μ mu µ mu ν nu ξ xi π pi ϖ varpi ρ rho ϱ varrho σ sigma ς varsigma τ tau υ upsilon φ varphi ϕ phi χ chi ψ psi ω omega ' +
    'Γ Gamma Δ Delta Θ Theta Λ Lambda Ξ Xi Π Pi Σ Sigma Υ Upsilon Φ Phi Ψ Psi Ω Omega ' +
    '∂ partial ∇ nabla ∞ infty ℏ hbar ħ hbar ℓ ell ℘ wp ℵ aleph ı imath ȷ jmath ∅ emptyset ∆ Delta ' +
    '± pm ∓ mp × times ÷ div · cdot ⋅ cdot ∙ bullet • bullet ∗ ast ⋆ star ∘ circ ⊕ oplus ⊖ ominus ⊗ otimes ⊘ oslash ⊙ odot ' +
    '∩ cap ∪ cup ⊎ uplus ⊓ sqcap ⊔ sqcup ∧ wedge ∨ vee ∖ setminus † dagger ‡ ddagger ' +
    '≤ leq ≥ geq ≪ ll ≫ gg ≠ neq ≡ equiv ≢ not\\equiv ≈ approx ≅ cong ≃ simeq ∼ sim ∝ propto ≐ doteq ≺ prec ≻ succ ⩽ leqslant ⩾ geqslant ' +
    '⊂ subset ⊃ supset ⊆ subseteq ⊇ supseteq ⊄ not\\subset ∈ in ∉ notin ∋ ni ⊢ vdash ⊨ models ⊥ perp ∥ parallel ∣ mid ∤ nmid ' +
    '∀ forall ∃ exists ∄ nexists ¬ neg ⊤ top ∠ angle ° circ ∴ therefore ∵ because □ square ■ blacksquare ' +
    '→ to ← leftarrow ↔ leftrightarrow ⇒ Rightarrow ⇐ Leftarrow ⇔ Leftrightarrow ↦ mapsto ↑ uparrow ↓ downarrow ' +
    '⟶ longrightarrow ⟵ longleftarrow ⟹ Longrightarrow ⟺ Longleftrightarrow ↪ hookrightarrow ⇌ rightleftharpoons ' +
    '∑ sum ∏ prod ∐ coprod ∫ int ∬ iint ∭ iiint ∮ oint ∯ oiint ⋂ bigcap ⋃ bigcup ⋀ bigwedge ⋁ bigvee ⨁ bigoplus ⨂ bigotimes ⨀ bigodot ' +
    '… ldots ⋯ cdots ⋮ vdots ⋱ ddots ⟨ langle ⟩ rangle 〈 langle 〉 rangle ⌊ lfloor ⌋ rfloor ⌈ lceil ⌉ rceil ‖ Vert √ surd ′ prime ″ prime\\prime ' +
    'ℜ Re ℑ Im ~ sim \\ backslash',
)
/** Characters with a meaning in TeX. */
const ESCAPED: ReadonlySet<string> = new Set(['%', '#', '{', '}', '_', '&', '$'])
const PLAIN: ReadonlyMap<string, string> = new Map([
  ['−', '-'],
  ['–', '-'],
  ['‐', '-'],
  ['∶', ':'],
  ['∕', '/'],
  ['⁄', '/'],
  ['^', '\\hat{}'],
  ['ℝ', '\\mathbb{R}'],
  ['ℕ', '\\mathbb{N}'],
  ['ℤ', '\\mathbb{Z}'],
  ['ℚ', '\\mathbb{Q}'],
  ['ℂ', '\\mathbb{C}'],
  ['ℙ', '\\mathbb{P}'],
])
/** Function application, invisible times, separator and plus; spaces without width; joiners. */
const INVISIBLE = /[\u2060-\u2064\u200b\u200c]|\u200d|\p{Variation_Selector}/u

/** Whether mathematics has a name for it that TeX sets upright. */
export const FUNCTION_NAMES: ReadonlySet<string> = new Set(
  (
    'arccos arcsin arctan arg cos cosh cot coth csc deg det dim exp gcd hom inf ker lg lim liminf limsup ln log max min ' +
    'Pr sec sin sinh sup tan tanh'
  ).split(' '),
)

/** Commands over or under their argument, by the character that Word draws there. */
export const ACCENTS: ReadonlyMap<string, string> = pairs(
  '\u0302 hat ^ hat ˆ hat \u0303 tilde ~ tilde ˜ tilde \u0304 bar \u0305 overline ¯ bar \u0307 dot ˙ dot \u0308 ddot ¨ ddot \u20db dddot ' +
    '\u030c check ˇ check \u0306 breve ˘ breve \u0301 acute ´ acute \u0300 grave ` grave \u20d7 vec → vec \u20d6 overleftarrow ' +
    '← overleftarrow \u20e1 overleftrightarrow \u030a mathring ⏞ overbrace ⏟ underbrace',
)

/** Text of an equation as TeX; `isAligned` keeps `&`, which aligns the lines of an equation array. */
export function equationText(text: string, isAligned = false): string {
  const row = new TexRow()
  let words = ''
  const endWords = (): void => {
    if (words !== '') row.add(`\\text{${words}}`)
    words = ''
  }
  for (const character of text) {
    if (INVISIBLE.test(character)) continue
    const sign = isAligned && character === '&' ? ' & ' : characterTex(character)
    if (sign === undefined) words += character
    else {
      endWords()
      row.add(sign)
    }
  }
  endWords()
  return row.finish()
}

/** Undefined for letters that fonts of mathematics lack. */
function characterTex(character: string): string | undefined {
  const command = COMMANDS.get(character)
  if (command !== undefined) return `\\${command}`
  if (ESCAPED.has(character)) return `\\${character}`
  const plain = PLAIN.get(character)
  if (plain !== undefined) return plain
  if (/\s/.test(character)) return ' '
  if (character <= '~') return character
  return /\p{L}/u.test(character) ? alphabetTex(character) : character
}

/** Mathematical letters, U+1D400 to U+1D7FF, in blocks of 52: the alphabet of TeX that each block is. */
const ALPHABETS = [
  'mathbf',
  '',
  'boldsymbol',
  'mathcal',
  'mathcal',
  'mathfrak',
  'mathbb',
  'mathfrak',
  'mathsf',
  'mathsf',
  'mathsf',
  'mathsf',
  'mathtt',
]
const FIRST_ALPHABET = 0x1d400
const LETTERS = 52

function alphabetTex(character: string): string | undefined {
  const letter = character.normalize('NFKC')
  const code = character.codePointAt(0) ?? 0
  if (letter === character || code < FIRST_ALPHABET || code > 0x1d7ff) return undefined
  const greek = COMMANDS.get(letter)
  if (greek !== undefined) return `\\${greek}`
  const alphabet = ALPHABETS[Math.floor((code - FIRST_ALPHABET) / LETTERS)] ?? ''
  return alphabet === '' || !/^[a-z]$/i.test(letter) ? letter : `\\${alphabet}{${letter}}`
}

function pairs(words: string): ReadonlyMap<string, string> {
  const parts = words.split(' ')
  return new Map(parts.flatMap((part, index) => (index % 2 === 0 ? [[part, parts[index + 1] ?? ''] as const] : [])))
}

/** Pieces of TeX one behind the other; a letter behind a command needs a blank between them. */
export class TexRow {
  private readonly pieces: string[] = []

  add(piece: string): void {
    if (piece === '') return
    const last = this.pieces.at(-1) ?? ''
    if (/^[a-z]/i.test(piece) && endsInCommand(last)) this.pieces.push(' ')
    this.pieces.push(piece)
  }

  finish(): string {
    return this.pieces.join('')
  }
}

const LONGEST_COMMAND = 32

/** Looks at the end only: texts may be long. */
function endsInCommand(tex: string): boolean {
  return /\\[a-z]+$/i.test(tex.slice(-LONGEST_COMMAND))
}

export function joined(...pieces: readonly string[]): string {
  const row = new TexRow()
  for (const piece of pieces) row.add(piece)
  return row.finish()
}

/** In braces, unless it is one sign, which scripts may follow as it is. */
export function grouped(tex: string): string {
  return /^(?:[^\\{}]|\\[a-z]+|\([^{}()\\]*\)|\\left[([|] [^{}]* \\right[)\]|]|\d+)$/i.test(tex) ? tex : `{${tex}}`
}

/** Words within an equation: signs of TeX are escaped. */
export function wordsTex(text: string): string {
  return text.replaceAll(/[\\{}%#_&$^~]/g, (sign) => (/[\\^~]/.test(sign) ? ' ' : `\\${sign}`))
}

/** Environments of matrices by the signs around them. */
export const MATRICES: ReadonlyMap<string, string> = new Map([
  ['()', 'pmatrix'],
  ['[]', 'bmatrix'],
  ['{}', 'Bmatrix'],
  ['||', 'vmatrix'],
  ['‖‖', 'Vmatrix'],
])

export function environment(name: string, rows: readonly string[]): string {
  return `\\begin{${name}} ${rows.join(' \\\\ ')} \\end{${name}}`
}

/** Commands of alphabets, by their names in Office and in MathML. */
export const ALPHABET_OF_VARIANT: ReadonlyMap<string, string> = new Map([
  ['bold', 'mathbf'],
  ['bold-italic', 'boldsymbol'],
  ['double-struck', 'mathbb'],
  ['script', 'mathcal'],
  ['fraktur', 'mathfrak'],
  ['sans-serif', 'mathsf'],
  ['monospace', 'mathtt'],
])
