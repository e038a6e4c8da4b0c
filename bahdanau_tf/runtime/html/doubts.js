// Why a translation may be wrong, by the rules of `bahdanau_tf.translation.doubts`, whose patterns
// and numbers `rules` has.

import { sentencesOf } from "./sentences.js";

export class Doubts {
  constructor(rules) {
    Object.assign(this, rules);
    this.numbers = RegExp(rules.number, "g");
    this.thousands = RegExp(`^(?:${rules.thousands})$`);
    this.codes = RegExp(rules.code, "g");
    this.spelled = RegExp(rules.spelled, "g");
    this.words = RegExp(rules.word, "gu");
    this.letters = RegExp(`${rules.letters}|(?:(?!${rules.letters})\\p{L})+`, "gu");
    this.runs = RegExp(rules.run, "u");
    this.acronym = RegExp(rules.acronym, "u");
    this.breaks = RegExp(rules.breaks, "gu");
    this.months = RegExp(rules.month, "g");
    this.lone = RegExp(rules.lone, "gu");
    this.hour = RegExp(rules.hour, "u");
    this.end = RegExp(rules.end, "u");
    this.usual = new Set(rules.usual);
    for (const name of ["vocabulary", "kept", "translated", "replaced"]) {
      this[name] = rules[name] === null ? null : new Set(rules[name].split(" "));
    }
  }

  // `{confidence, doubts}` of a translation; each doubt is `{kind, detail}`. `tokens` are the byte
  // offsets of the source's.
  of(source, tokens, { text, logProb, finished, truncated, offsets }) {
    const doubts = [];
    const add = (kind, detail = "") => doubts.push({ kind, detail });
    const { length } = offsets, isText = length || tokens.length;
    const confidence = this.confidence(logProb, isText && Math.max(length + finished, 1));
    const strange = this.unread(source, text);
    if (strange.length) add("characters", strange.slice(0, this.shown).join(""));
    if (!this.is_short) this.ofWords(source, tokens, text, confidence, !truncated, add);
    if (truncated) add("cut");
    const phrase = this.repeated(text);
    if (phrase && !this.repeated(source)) add("repeated", phrase);
    if (this.longest !== null && tokens.length > this.longest) add("long", `${this.longest}`);
    if (confidence < this.unlikely) add("unlikely", `${Math.round(100 * (1 - this.unlikely))}%`);
    return { confidence, doubts };
  }

  // Whether a text without letters is kept as it is.
  keeps(text) {
    return this.copies && !this.is_short && /\S/.test(text) && !/\p{L}/u.test(text);
  }

  // Those of the words, numbers, names and signs of a sentence.
  ofWords(source, tokens, text, confidence, isWhole, add) {
    const [strange, share] = this.newWords(source, tokens);
    const isStrange = this.split !== null && share > this.split && !(confidence > this.unsure);
    const before = this.plainWords(source), after = this.plainWords(text);
    const words = new Set([...this.unreadWords(before, after), ...(isStrange ? strange : [])]);
    if (words.size) add("words", [...words].slice(0, this.phrase).join(", "));
    const hasNumbers = !this.changed.includes("number") && this.numbersOf(source).length;
    const missing = hasNumbers ? this.missingNumbers(source, text) : [];
    const first = before.slice(0, 1).filter((x) => !Object.hasOwn(this.counterparts, x));
    const lost = this.lost([...first.map((x) => x.toLowerCase()), ...before, ...missing], text);
    for (const x of missing) if (x.length > 1 || lost.includes(x)) add("number", x);
    const added = hasNumbers ? this.missingNumbers(text, source) : [];
    for (const number of added) add("added", number);
    const names = this.newIn(this.missingNames(source, text), this.translated);
    for (const name of names) add("name", name);
    for (const x of lost) if (![...missing, ...names].includes(x)) add("dropped", x);
    const same = this.newIn(this.sameWords(before, after), this.kept);
    for (const word of [...same, ...this.firstKept(before, after)]) add("untranslated", word);
    const codes = this.changed.includes("code") ? [] : source.match(this.codes) ?? [];
    for (const code of codes) if (!text.includes(code)) add("code", code);
    const isNew = (x) => codes.length && !source.includes(x) && !codes.some((y) => x.startsWith(`${y}-`));
    for (const code of (text.match(this.codes) ?? []).filter(isNew)) add("code", code);
    const last = source.trimEnd().slice(-1);
    if (this.stops !== null && last && this.clause.includes(last) && !this.stops.includes(last)) add("fragment", last);
    if (this.marksAlone(text) && !this.marksAlone(source)) add("marks");
    if (this.ends && isWhole && this.end.test(source) && !this.end.test(text)) add("end");
    const all = sentencesOf(source).length, some = (text.match(this.breaks) ?? []).length;
    const isQuoted = [...this.quotes, "«"].some((mark) => source.includes(mark));
    if (this.ends && isWhole && all > 1 && some < all && !isQuoted) add("sentences", `${some}/${all}`);
    for (const name of this.doubledNames(before, after)) add("repeated", name);
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
    const isKnown = (x) => this.usual.has(x) || /\s/.test(x);
    const forms = (x) => [x, x.normalize("NFKC"), x.normalize("NFKD")];
    const isUsual = (x) => forms(x).some((form) => [...form].every(isKnown));
    return [...new Set(text)].filter((x) => !isUsual(x));
  }

  // Not signs and names that are carried over. Models read composed characters.
  unread(source, text) {
    [source, text] = [source, text].map((side) => side.normalize("NFC"));
    const rest = source.replace(this.words, (word) =>
      /^\p{Lu}/u.test(word) && text.includes(word) ? "" : word);
    return this.strange(rest).filter((x) => /\p{L}/u.test(x) || !text.includes(x));
  }

  newWords(source, tokens) {
    const bytes = new TextEncoder().encode(source), words = [];
    const length = (text) => new TextEncoder().encode(text).length;
    const isBlank = (x) => x === 32 || (9 <= x && x <= 13);
    const starts = tokens.map(([start, end]) => {
      while (start < end && isBlank(bytes[start])) start += 1;
      return start;
    });
    let count = 0;
    for (const { 0: word, index } of source.matchAll(this.words)) {
      if (!/^(?!\p{Lu})\p{L}+$/u.test(word)) continue;
      count += 1;
      const first = length(source.slice(0, index)), last = first + length(word);
      if (starts.filter((x) => first <= x && x < last).length > 1) words.push(word);
    }
    return [words, words.length < this.new_words ? 0 : words.length / count];
  }

  // The words of a source that the training never had and the translation does not have.
  unreadWords(before, after) {
    const own = before.map((x, i) => (i ? x : x.toLowerCase()));
    const words = own.filter((x) => x === x.toLowerCase() && [...x].length > 1);
    const isThere = new Set(after.map((x) => x.toLowerCase()));
    return this.often_new ? [] : this.newIn(words, this.vocabulary).filter((x) => !isThere.has(x));
  }

  missingNumbers(source, text) {
    const left = new Map();
    const add = (number, count) => left.set(number, (left.get(number) ?? 0) + count);
    for (const number of this.numbersOf(source.replace(this.months, " "))) add(number, 1);
    for (const number of this.numbersOf(text)) add(number, -1);
    const hasHours = this.hour.test(source) || this.hour.test(text);
    const isHour = (number) => hasHours && left.get(this.half_a_day[number]) < 0;
    const lone = source.normalize("NFKC").match(this.lone) ?? [], counts = (x) => x.length > 1 || lone.includes(x);
    return [...left].filter(([x, n]) => n > 0 && counts(x) && !isHour(x)).map(([x]) => x);
  }

  newIn(words, usual) {
    return usual === null ? [] : words.filter((word) => !usual.has(word));
  }

  // The words of a source with counterparts, none of which is in its translation.
  lost(words, text) {
    const numbers = this.numbersOf(text);
    const hours = this.hour.test(text) ? numbers.map((x) => this.half_a_day[x]) : [];
    const after = new Set([...this.wordsOf(text.toLowerCase()), ...numbers, ...hours]);
    const isLost = (x) => Object.hasOwn(this.counterparts, x)
      && !this.counterparts[x].split(" ").some((y) => after.has(y));
    return [...new Set(words)].filter(isLost);
  }

  wordsOf(text) {
    return text.normalize("NFC").match(this.letters) ?? [];
  }

  plainWords(text) {
    return this.wordsOf(text.replace(this.spelled, " "));
  }

  doubledNames(before, after) {
    const count = (words, x) => words.filter((y) => y === x).length;
    const isMore = (x) => count(after, x) > count(before, x) && before.includes(x);
    return [...new Set(after)].filter((x) => /^\p{Lu}./u.test(x) && isMore(x));
  }

  sameWords(before, after) {
    const isLower = (x) => x === x.toLowerCase() && x !== x.toUpperCase();
    return [...new Set(before)].filter((x) => after.includes(x) && isLower(x));
  }

  // A first word that training translates.
  firstKept(before, after) {
    return this.keptWords(before.slice(0, 1), after).filter((x) => x !== x.toLowerCase());
  }

  keptWords(before, after) {
    return before.filter((x) => after.includes(x) && this.replaced.has(x.toLowerCase()));
  }

  missingNames(source, text) {
    const after = this.wordsOf(text).map((word) => word.toLowerCase());
    return [...new Set(this.namesOf(source))].filter((name) => !after.includes(name.toLowerCase()));
  }

  // Not words that begin a sentence or follow a quotation mark, and none of a title.
  namesOf(text) {
    const words = sentencesOf(text.normalize("NFC")).map((x) => [...x.matchAll(this.letters)]);
    const names = words.flatMap((row) => row.slice(1)).filter(({ 0: word, index, input }) =>
      /^\p{Lu}\p{Ll}+$/u.test(word) && !`${this.quotes}«`.includes(input[index - 1])
        && !this.acronym.test(input.slice(Math.max(index - 9, 0), index)));
    return 2 * names.length <= words.flat().length ? names.map(([name]) => name) : [];
  }

  marksAlone(text) {
    const count = (mark) => text.split(mark).length - 1;
    return [...this.quotes].reduce((sum, mark) => sum + count(mark), 0) % 2 === 1
      || this.pairs.some(([first, last]) => count(first) !== count(last));
  }

  numbersOf(text) {
    return [...text.normalize("NFKC").matchAll(this.numbers)].flatMap(([number]) => {
      const digits = number.match(/[0-9]+/g);
      return this.thousands.test(number) ? [digits.join("")] : digits;
    });
  }

  repeated(text) {
    const words = [...text.matchAll(this.words)].map(([word]) => word.toLowerCase());
    for (let count = 1; count <= this.phrase; count++) {
      const repeats = count === 1 || this.is_short ? this.repeats : this.twice;
      for (let start = 0; start + count * repeats <= words.length; start++) {
        const all = words.slice(start, start + count * repeats);
        if (all.every((word, i) => word === all[i % count])) return all.slice(0, count).join(" ");
      }
    }
    return this.runs.exec(text)?.[0] ?? "";
  }
}
