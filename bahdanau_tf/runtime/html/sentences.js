// Splits a line into sentences, and the marks around them off, by the rules of
// `bahdanau_tf.translation.sentence_splitting`; a test compares these constants with those there.

const LISTED = RegExp([
  String.raw`^[^\S\ufeff]*(?:[-–—](?:[^\S\ufeff]+(?!\d+(?![\d.)]))|(?=[A-ZÀ-Þ]))|(?:[*•‣◦▪●○■□☐☑✓✔✗→]|#{1,6}|>+|\[[ xX]?\]|`,
  String.raw`\(?[0-9]{1,2}[.)]|\(?[A-Za-z]\)|[A-Z]:)[^\S\ufeff]+|[・※①-⑳][^\S\ufeff]*(?![・※①-⑳]))+(?=[\S\ufeff])`,
].join(""));
const FRAMES = "\"\" '' “” „“ ‘’ «» 「」 『』 () （） [] 【】 **** ** ____ __ ~~~~".split(" ");
const FRAMED = FRAMES.map((frame) => {
  const { length } = frame, escaped = (x) => x.replace(/[[\]()*]/g, "\\$&");
  const first = escaped(frame.slice(0, length / 2)), last = escaped(frame.slice(length / 2));
  return RegExp([
    String.raw`^([^\S\ufeff]*${first}[^\S\ufeff]*)`,
    String.raw`((?:(?!${first}|${last}).|(?<=[\p{L}\p{N}])['’](?=[\p{L}\p{N}]))+)`,
    String.raw`(${last}[.!?,;:…]?[^\S\ufeff]*)$`,
  ].join(""), "su");
});
const LABELLED = RegExp([
  String.raw`^([^\S\ufeff]*(?:\*\*|__)?)([A-ZÀ-Þ](?:[^\s:,!?\d*_]|\ufeff)+(?: (?:[^\s:,!?\d*_]|\ufeff)+){0,2})`,
  String.raw`(:(?:\*\*|__)?[^\S\n\ufeff]+)(?=["'“«(*_]*[A-ZÀ-Þ])`,
].join(""), "u");
const ENDS = RegExp([
  String.raw`「[^「」]{0,200}」|『[^『』]{0,200}』|（[^（）]{0,200}）|`,
  String.raw`(?<![\.!\?…‥؟।])(?<mark>[\.!\?…‥؟।]+)`,
  String.raw`[\"'”’»›)\]}]*(?:[ \u00a0\u202f][»”])?(?=[^\S\ufeff])[^\S\ufeff]+|`,
  String.raw`(?<wide>[。！？｡]+)[^\S\ufeff]*|`,
  String.raw`(?<tight>(?<=[a-zà-ÿ]{3})\.|(?<=[a-zà-ÿ])[!?])(?=[A-ZÀ-Þ][a-zà-ÿ'’ ])`,
  String.raw`(?![A-Za-z0-9'./@_-]*[./@_][A-Za-z0-9])`,
].join(""), "g");
const ABBREVIATIONS = (
  "A Abs Art Aug B Bd C Capt Co Col Corp D Dez Dr Dra Dña E Exma Exmo F Feb Fr G Gen Gov H Hon Hr " +
  "Hrsg I Inc J Jan Jh Jr K L Lt Ltd M MM Me Messrs Mgr Mio Mlle Mme Mr Mrd Mrs Ms Mt N Nov Nr O Okt P " +
  "Prof Q R Rep Rev S Sen Sept Sgt Sr Sra Srta St Str T Tel U Ud Uds V W X Y Z bzw ca cf env etc " +
  "evtl ggf inkl pág usw vgl vol vs zzgl"
).split(" ");
const NUMBERING = "Art No Nos art fig p pp".split(" ");

function unlabelled(line) {
  const isEnd = (before, mark, after) => {
    if (!/[\p{L}\p{N}]/u.test(before) || /^[\p{Lowercase}.!?…‥؟।]/u.test(after)) return false;
    if (mark !== ".") return true;
    const word = before.split(/[^\S\ufeff]|[([{"'“‘«’]/).at(-1);
    const isShort = /^\p{Uppercase}$|\..*\P{Nd}$/u.test(word) || ABBREVIATIONS.includes(word);
    const isNumbered = NUMBERING.includes(word) && /^\p{Nd}/u.test(after);
    return !(isShort || isNumbered || /^[^\S\ufeff]*\p{Nd}+[^\S\ufeff]*$/u.test(before)); // "1. Introduction"
  };
  const sentences = [];
  let start = 0;
  for (const { 0: { length }, index, groups: { mark, wide, tight } } of line.matchAll(ENDS)) {
    const before = line.slice(Math.max(start, index - 40), index), end = index + length;
    const isTight = tight && !/[./@_][A-Za-z0-9'-]*$/.test(before);
    if (!wide && !isTight && !(mark && isEnd(before, mark, line.slice(end)))) continue;
    sentences.push(line.slice(start, end));
    start = end;
  }
  return [...sentences, line.slice(start)].filter(Boolean); // joined, they are the line
}

export function sentencesOf(line) {
  return unlabelled(line).flatMap((sentence) => {
    const label = LABELLED.exec(sentence)?.[0];
    return label ? [label, sentence.slice(label.length)] : [sentence];
  });
}

// `[before, text, after]`: the marks of lists before a text, and pairs around it.
export function unframed(text) {
  let before = "", after = "";
  for (;;) {
    const mark = LISTED.exec(text)?.[0] ?? "";
    before += mark;
    text = text.slice(mark.length);
    const hasWords = (x) => x && (x[2].match(/[\p{L}\p{N}]/gu) ?? []).length > 1;
    const frame = FRAMED.map((x) => x.exec(text)).find(hasWords);
    if (!frame) return [before, text, after];
    text = frame[2].replace(/[^\S\ufeff]+$/, "");
    before += frame[1];
    after = frame[2].slice(text.length) + frame[3] + after;
  }
}

// The sentences of a text, each as `unframed` has them; behind a label is a colon.
export function piecesOf(text) {
  return text.split(/(?<=\n)(?=[^\S\n\ufeff]*[\S\ufeff])/).flatMap((line) => {
    const [before, inside, after] = unframed(line);
    const pieces = sentencesOf(inside).map((sentence) => {
      const label = LABELLED.exec(`${sentence}A`);
      return label ? label.slice(1) : unframed(sentence);
    });
    if (pieces.length) {
      pieces[0][0] = before + pieces[0][0];
      pieces.at(-1)[2] += after;
    }
    return pieces;
  });
}
