const phrases = (text) => text.trim().split(/\s+/)

const LANGUAGES = {
  chinese: {
    subjects: phrases('图书馆 管理员 研究小组 这座城市 新的系统 年轻的读者 当地的工厂 铁路公司 养蜂人 港口'),
    adverbs: phrases('每天 通常 很少 已经 首先 随后 仍然 同时'),
    verbs: phrases('检查 整理 介绍 改进 讨论 记录 保护 使用 比较 设计'),
    objects: phrases(
      '古老的目录 水的温度 列车时刻表 数据的质量 城市的交通 蜂蜜的产量 能源的消耗 货物的重量 读者的意见',
    ),
    tails: phrases('在第一次试验之后 因为成本太高 以便节省时间 并且公布结果 而不影响其他工作'),
    headings: phrases('概述 研究方法 主要结果 讨论与建议 历史背景 使用说明 维护计划'),
    comma: '，',
    stop: '。',
  },
  japanese: {
    subjects: phrases('図書館は 管理者は 研究チームは この町は 新しい装置は 若い読者は 鉄道会社は 養蜂家は'),
    adverbs: phrases('毎日 ふつう まれに すでに はじめに その後 同時に'),
    verbs: phrases('調べる 整理する 紹介する 改良する 記録する 保護する 比較する'),
    objects: phrases('古い目録を 水の温度を 列車の時刻表を データの品質を 町の交通を 蜂蜜の収量を'),
    tails: phrases('最初の実験のあとで 費用が高いので 時間を節約するために 結果を公表しながら'),
    headings: phrases('概要 研究の方法 主な結果 考察と提案 歴史的背景 使い方'),
    comma: '、',
    stop: '。',
  },
}

/** Prose of a language written without blanks; each sentence has the word order of its language. */
export class FarEastProse {
  #random
  #words

  constructor(random, language) {
    this.#random = random
    this.#words = LANGUAGES[language]
    this.isVerbLast = language === 'japanese'
  }

  sentence() {
    const { subjects, adverbs, verbs, objects, tails, comma, stop } = this.#words
    const [subject, adverb, verb, object, tail] = [subjects, adverbs, verbs, objects, tails].map((list) =>
      this.#random.pick(list),
    )
    return this.isVerbLast
      ? `${subject}${tail}${comma}${adverb}${object}${verb}${stop}`
      : `${subject}${adverb}${verb}${object}${comma}${tail}${stop}`
  }

  paragraph(count) {
    return Array.from({ length: count }, () => this.sentence()).join('')
  }

  heading() {
    return this.#random.pick(this.#words.headings)
  }

  headings() {
    return this.#random.sample(this.#words.headings, this.#words.headings.length)
  }

  item() {
    return this.sentence()
  }
}
