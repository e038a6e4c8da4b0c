// Splits a line into sentences, by the rules of `bahdanau_tf.translation.lines` in the settings.

export function sentencesOf(line, { ends, abbreviations, numbering }) {
  const isEnd = (before, mark, after) => {
    if (!/[\p{L}\p{N}]/u.test(before) || /^[\p{Lowercase}.!?…‥؟।]/u.test(after)) return false;
    if (mark !== ".") return true;
    const word = before.split(/[^\S\ufeff]|[([{"'“‘«’]/).at(-1);
    const isShort = /^\p{Uppercase}$|\..*\P{Nd}$/u.test(word) || abbreviations.includes(word);
    const isNumbered = numbering.includes(word) && /^\p{Nd}/u.test(after);
    return !(isShort || isNumbered || /^[^\S\ufeff]*\p{Nd}+[^\S\ufeff]*$/u.test(before)); // "1. Introduction"
  };
  const sentences = [];
  let start = 0;
  for (const { 0: { length }, index, groups: { mark, wide } } of line.matchAll(RegExp(ends, "g"))) {
    const before = line.slice(Math.max(start, index - 40), index), end = index + length;
    if (!wide && !(mark && isEnd(before, mark, line.slice(end)))) continue;
    sentences.push(line.slice(start, end));
    start = end;
  }
  return [...sentences, line.slice(start)].filter(Boolean); // joined, they are the line
}
