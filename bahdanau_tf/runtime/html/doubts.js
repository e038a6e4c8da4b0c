// Why a translation may be wrong, by the rules of `bahdanau_tf.translation.doubts`, whose patterns
// and numbers `rules` has.

export class Doubts {
  constructor(rules) {
    Object.assign(this, rules);
    this.numbers = RegExp(rules.number, "g");
    this.thousands = RegExp(`^(?:${rules.thousands})$`);
    this.usual = new Set(rules.usual);
  }

  // `{confidence, doubts}` of a translation; each doubt is `{kind, detail}`.
  of(source, count, { text, logProb, finished, offsets }) {
    const doubts = [];
    const add = (kind, detail = "") => doubts.push({ kind, detail });
    const confidence = this.confidence(logProb, offsets.length && offsets.length + finished);
    const strange = this.strange(source);
    if (strange.length) add("characters", strange.slice(0, this.shown).join(""));
    const written = this.numbersOf(text);
    for (const number of this.numbersOf(source)) {
      if (number.length > 1 && !written.includes(number)) add("number", number);
    }
    if (!finished) add("cut");
    const phrase = this.repeated(text);
    if (phrase && !this.repeated(source)) add("repeated", phrase);
    if (this.longest !== null && count > this.longest) add("long", this.longest);
    if (confidence < this.unlikely) add("unlikely", `${Math.round(100 * (1 - this.unlikely))}%`);
    return { confidence, doubts };
  }

  confidence(logProb, length) {
    if (!this.lengths.length || !length) return undefined;
    const group = this.lengths.findIndex((longest) => length <= longest);
    const scores = this.scores.at(group), mean = logProb / length;
    const passed = scores.slice(1).map((score, i) => {
      const step = Math.max(score - scores[i], 1e-6);
      return Math.min(Math.max((mean - scores[i]) / step, 0), 1);
    });
    return passed.reduce((a, b) => a + b) / passed.length;
  }

  strange(text) {
    const isUsual = (x) => this.usual.has(x) || /\s/.test(x);
    return [...new Set(text)].filter((x) => !isUsual(x) && ![...x.normalize("NFKC")].every(isUsual));
  }

  numbersOf(text) {
    return [...text.normalize("NFKC").matchAll(this.numbers)].flatMap(([number]) => {
      const digits = number.match(/\d+/g);
      return this.thousands.test(number) ? [digits.join("")] : digits;
    });
  }

  repeated(text) {
    const words = text.split(/\s+/).filter(Boolean);
    const { phrase: longest, repeats } = this;
    for (let count = 1; count <= longest; count++) {
      for (let start = 0; start + count * repeats <= words.length; start++) {
        const all = words.slice(start, start + count * repeats);
        if (all.every((word, i) => word === all[i % count])) return all.slice(0, count).join(" ");
      }
    }
    return "";
  }
}
