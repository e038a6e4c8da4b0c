// The forms in which a text is read whose capitals say nothing, by the rules of
// `bahdanau_tf.translation.capitals`.

import { sentencesOf } from "./sentences.js";

const WORD = "[\\p{L}\\p{Nl}\\p{No}]+";

export class Capitals {
  constructor(rules) {
    const { vocabulary, capitals, translated, counterparts, begins, is_short, spelled, end, short, part } = rules;
    Object.assign(this, { short, counterparts, begins, spellings: rules.spellings, between: rules.between, end: RegExp(end, "u"), part: RegExp(part, "u") });
    this.translated = translated === null ? null : new Set(translated.split(" "));
    this.knowsAny = vocabulary !== null && capitals !== null && !is_short;
    this.known = new Set(vocabulary?.split(" "));
    const usual = (capitals ?? "").split(" ").filter(Boolean).map((word) => word.replace("_", " "));
    this.usual = new Map(usual.map((word) => [word.toLowerCase(), word]));
    this.words = RegExp(`${spelled}|${WORD}(?:[.&]${WORD})+|(?<word>${WORD}(?:['’]${WORD})*)`, "gu");
  }

  readings(text) {
    if (!this.knowsAny || !this.usual.size) return [text];
    const rows = sentencesOf(text).map((sentence) => this.ofSentence(sentence));
    const forms = Array.from({ length: Math.max(...rows.map((row) => row.length), 0) }, (_, place) =>
      rows.map((row) => row.at(place) ?? row.at(-1)).join(""));
    const size = (x) => new TextEncoder().encode(x).length;
    const fit = [...new Set(forms)].filter((form) => size(form) === size(text));
    return fit.length ? fit : [text];
  }

  // The translation of a text of names alone, or undefined.
  namesAlone(text) {
    if (!this.knowsAny || this.translated === null) return undefined;
    const words = [...text.matchAll(this.words)].map(({ groups: { word } }) => word);
    const rest = text.trim().replace(/[.!?]+$/, "").replace(this.words, "").replace(/^[ -]+|[ -]+$/g, "");
    if (!words.length || !words.every(Boolean) || rest) return undefined;
    const spellingOf = (word) => Object.hasOwn(this.spellings, word.toLowerCase()) && this.spellings[word.toLowerCase()];
    if (words.every(spellingOf)) return text.replace(this.words, spellingOf).trim().replaceAll(" ", this.between);
    const formOf = (word) => this.usual.get(word.toLowerCase());
    const isName = (word) => (formOf(word)
      ? /^\p{Lu}\p{Ll}+$/u.test(formOf(word))
      : spellingOf(word)
        || (/^\p{Uppercase}/u.test(word) && !partsOfWord(word).some((x) => this.known.has(x))));
    if (!words.every(isName)) return undefined;
    const forms = words.map((word) => formOf(word) ?? word), [form] = forms;
    const others = words.length === 1 && Object.hasOwn(this.counterparts, form) ? this.counterparts[form] : "";
    const [spelled, ...more] = others.split(" ").filter((x) => x && x !== form.toLowerCase());
    const isSpelled = (x) => x.toLowerCase() === x.toUpperCase() && !this.part.test(x);
    if (spelled && !more.length && isSpelled(spelled)) {
      const rows = Object.values(this.counterparts).filter((x) => x.split(" ").includes(spelled));
      if (rows.length === 1) return text.replace(this.words, () => spelled).trim();
    }
    if (forms.every((x) => this.translated.has(x))) return undefined;
    return text.replace(this.words, (word) => formOf(word) ?? word).trim();
  }

  ofSentence(sentence) {
    const words = [...sentence.matchAll(this.words)].flatMap(({ groups: { word } }) => word ?? []);
    const letters = words.join(""), small = letters.toLowerCase(), large = letters.toUpperCase();
    if (small === large) return [sentence];
    const begun = this.begins ? withCapital : (x) => x;
    const change = (write) => this.paired(
      sentence.replace(this.words, (x, ...rest) => (rest.at(-1).word ? write(x) : x)));
    const anew = change((word) => partsOfWord(word).map((x) => this.usual.get(x) ?? x).join(""));
    const isAlone = words.length === 1;
    if (isAlone && !this.areKnown(words[0])) return [sentence];
    if (letters === small) {
      if (isAlone) return [sentence, anew];
      return [anew !== sentence || this.end.test(sentence) ? begun(anew) : sentence];
    }
    if (letters === large && [...letters].length > 1) {
      if (!isAlone) return [begun(anew)];
      return [...([...letters].length <= this.short ? [sentence] : []), begun(anew), anew];
    }
    const isTitled = (x, i) => /^\p{Uppercase}/u.test(x) || (i && [...x].length <= this.short);
    const isLower = (word) => this.areKnown(word) && partsOfWord(word).every((x) => !this.usual.has(x));
    const write = (word) => (isLower(word) ? word.toLowerCase() : word);
    if (words.every(isTitled)) return [sentence, isAlone ? change(write) : begun(change(write))];
    const isLoud = (word) => word === word.toUpperCase() && [...word].length > this.short;
    const form = change((word) => (isLoud(word) ? write(word) : word));
    return [/^\p{Uppercase}/u.test(words[0]) ? begun(form) : form];
  }

  // With capitals for two words that have them together.
  paired(sentence) {
    const words = [...sentence.matchAll(this.words)].filter(({ groups }) => groups.word);
    for (const [i, { 0: last, index }] of words.entries()) {
      const start = words[i - 1]?.index, end = index + last.length;
      const two = this.usual.get(sentence.slice(start ?? end, end).toLowerCase());
      if (two?.includes(" ")) sentence = sentence.slice(0, start) + two + sentence.slice(end);
    }
    return sentence;
  }

  areKnown(word) {
    return partsOfWord(word).every((x) => /['’]/.test(x) || this.known.has(x));
  }
}

const partsOfWord = (word) => word.split(/(['’])/).map((x) => x.toLowerCase());
const withCapital = (sentence) => sentence.replace(/[\p{L}\p{N}]/u, (x) => x.toUpperCase());

// The reply for a form as that for a text: its translations begin with a capital if the text does.
export function asTyped(reply, form, text) {
  const place = form.search(/\p{L}/u), isLarge = /^\p{Uppercase}/u.test(text.slice(place));
  const capital = (x) => (isLarge && /^\p{Lowercase}(?!\p{Uppercase})/u.test(form.slice(place))
    ? x.replace(/\p{L}/u, (letter) => letter.toUpperCase()) : x);
  return { ...reply, translations: reply.translations.map((x) => ({ ...x, text: capital(x.text) })) };
}
