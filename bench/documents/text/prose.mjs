import { ADVERBS, MODIFIERS, PEOPLE, PLACES } from './vocabulary.mjs'

const plural = (noun) =>
  /(?:[sx]|[cs]h)$/.test(noun)
    ? `${noun}es`
    : /[^aeiou]y$/.test(noun)
      ? noun.replace(/y$/, 'ies')
      : /shelf$/.test(noun)
        ? noun.replace(/f$/, 'ves')
        : `${noun}s`
const third = (verb) => (/(?:[sx]|[cs]h)$/.test(verb) ? `${verb}es` : verb.replace(/([^aeiou])y$/, '$1ie') + 's')
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1)
const titled = (text) => text.replace(/(^|[\s-])([a-z])/g, (_, before, letter) => before + letter.toUpperCase())
const article = (words) => (/^[aeiou]/.test(words) ? `an ${words}` : `a ${words}`)

const SENTENCES = [
  (say) => `The ${say.adjective()} ${say.noun()} ${say.acts()} the ${say.noun()} ${say.place()}.`,
  (say) => `When ${article(say.noun())} ${say.acts()} the ${say.noun()}, the ${say.thing()} ${say.adverb()} changes.`,
  (say) =>
    `${capital(plural(say.noun()))} that ${say.verb()} ${plural(say.noun())} need ${say.modifier()} ${say.thing()}.`,
  (say) => `In ${say.year()}, ${say.person()} reported ${say.number()} ${say.unit()} for each ${say.noun()}.`,
  (say) => `It is not the ${say.noun()} but the ${say.thing()} that decides how ${plural(say.noun())} ${say.verb()}.`,
  (say) =>
    `Most ${plural(say.noun())} ${say.adverb()} ${say.verb()} the ${say.noun()}; others wait for ${article(say.noun())}.`,
  (say) =>
    `This is why ${article(say.modifier())} ${say.noun()} should never ${say.verb()} ${article(say.noun())} alone.`,
  (say) => `As a result, ${say.thing()} fell by ${say.number()} percent, while ${say.thing()} stayed the same.`,
  (say) =>
    `${capital(say.person())} and ${say.person()} compared the ${say.adjective()} ${say.noun()} with the ${say.adjective()} one.`,
  (say) =>
    `Without ${say.thing()}, ${article(say.adjective())} ${say.noun()} cannot ${say.verb()} the ${plural(say.noun())} it was built for.`,
  (say) => `Two questions remain: who ${say.acts()} the ${say.noun()}, and how is ${say.thing()} paid for?`,
  (say) =>
    `The ${say.noun()} (${article(say.modifier())} one, as a rule) ${say.acts()} ${say.number()} ${say.unit()} ${say.place()}.`,
  (say) =>
    `“${capital(say.thing())} is not a luxury,” said ${say.person()}, who has kept ${plural(say.noun())} for years.`,
  (say) =>
    `Neither the ${say.noun()} nor the ${say.adjective()} ${say.noun()} was found to ${say.verb()} the ${say.thing()}.`,
  (say) =>
    `Once the ${say.noun()} has been checked, ${say.verb()} it again and note the ${say.thing()} ${say.place()}.`,
]

const HEADINGS = [
  (say) => `${titled(say.adjective())} ${titled(plural(say.noun()))}`,
  (say) => `How to ${titled(say.verb())} the ${titled(say.noun())}`,
  (say) => `${titled(say.thing())} and ${titled(say.thing())}`,
  (say) => `Effects of ${titled(say.thing())}`,
  (say) => `${titled(plural(say.noun()))} in Practice`,
  (say) => `Choosing the Right ${titled(say.noun())}`,
  (say) => `Notes on ${titled(say.thing())}`,
]

const ITEMS = [
  (say) => `${capital(say.verb())} the ${say.adjective()} ${say.noun()} before the ${say.noun()}.`,
  (say) => `${capital(say.adjective())} ${plural(say.noun())} with ${say.number()} ${say.unit()}`,
  (say) =>
    `The ${say.noun()} that ${say.acts()} the ${say.noun()} ${say.place()}, even when its ${say.thing()} is low and nobody ${say.acts()} it.`,
  (say) => `${capital(say.thing())} of the ${say.noun()}`,
  (say) => `Ask ${say.person()} about the ${say.noun()} and its ${say.thing()}.`,
]

const IDENTIFIER = (words) => words.replace(/[^a-z]+/g, '_')

/** Sentences, headings, list items and programs about one topic; the order of calls decides what is said. */
export class Prose {
  #random
  #topic
  #recent = []

  constructor(random, topic) {
    this.#random = random
    this.#topic = topic
  }

  noun = () => this.#random.pick(this.#topic.nouns)
  adjective = () => this.#random.pick(this.#topic.adjectives)
  verb = () => this.#random.pick(this.#topic.verbs)
  acts = () => third(this.verb())
  thing = () => this.#random.pick(this.#topic.things)
  unit = () => this.#random.pick(this.#topic.units)
  person = () => this.#random.pick(PEOPLE)
  place = () => this.#random.pick(PLACES)
  adverb = () => this.#random.pick(ADVERBS)
  modifier = () => this.#random.pick(MODIFIERS)
  number = () => String(this.#random.integer(2, 980))
  year = () => String(this.#random.integer(1954, 2024))

  sentence() {
    const template = this.#random.pick(SENTENCES.filter((one) => !this.#recent.includes(one)))
    this.#recent = [template, ...this.#recent].slice(0, SENTENCES.length >> 1)
    return template(this)
  }

  /** @param {number} count of sentences */
  paragraph(count) {
    return Array.from({ length: count }, () => this.sentence()).join(' ')
  }

  heading() {
    return this.#random.pick(HEADINGS)(this)
  }

  title() {
    return `${this.#topic.name}: ${this.heading()}`
  }

  item() {
    return this.#random.pick(ITEMS)(this)
  }

  label() {
    return capital(this.noun())
  }

  identifier() {
    return IDENTIFIER(`${this.verb()} ${this.noun()}`)
  }

  /** A short program with indented and empty lines. */
  program() {
    const [name, list, one] = [this.identifier(), IDENTIFIER(plural(this.noun())), IDENTIFIER(this.noun())]
    const lines = [
      `def ${name}(${list}, limit=${this.number()}):`,
      '    total = 0',
      `    for ${one} in ${list}:`,
      `        if ${one}.${IDENTIFIER(this.thing())} > limit:`,
      `            raise ValueError("${this.thing()} above the limit")`,
      `        total += ${one}.${IDENTIFIER(this.thing())} * ${this.number()}`,
      '    return total',
    ]
    return this.#random.chance(0.5)
      ? [...lines, '', `print(${name}([], ${this.number()}))`].join('\n')
      : lines.join('\n')
  }
}
