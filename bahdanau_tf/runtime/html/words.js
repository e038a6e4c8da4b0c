// What a page says, in three languages, and its elements.

export const WORDS = {
  en: {
    language: "English", title: "Translation", text: "Text to translate", submit: "Translate",
    shortcut: "or Ctrl + Enter", search: "Search", beam: "thorough (beam search)",
    greedy: "fast (greedy search)", busy: "Translating …", best: "The best translations",
    progress: "{done} of {all} sentences", about: "About this model", copy: "Copy", copied: "Copied",
    unfinished: "unfinished", empty: "(empty)", quotes: "“”", separator: ", ",
    tooLong: "Only the first {count} characters are translated.", open: "Look inside", close: "Close",
    hint: "Point at a word to see what it comes from.", keys: "Arrow keys move, Esc leaves.",
    aligned: "{word} was aligned to {others}", attendedTo: "{word} was attended to for {others}",
    nothing: "no word in particular", noAlignment: "This model has no alignment.",
    bestOnly: "The alignment is known for the best translation only.",
    truncated: "Longer than this model can read or write: part of it is missing.",
    steps: "Each step writes a word, or a part of one", weights: "Where it looks (α): move it",
    candidates: "What it could write: choose", gates: "Gates, mean of their units",
    width: "Beam width", undo: "Undo", leftOut: "left out: {words}", leaveOut: "Leave out {word}",
  },
  ko: {
    language: "한국어", title: "번역", text: "번역할 글", submit: "번역", shortcut: "또는 Ctrl + Enter",
    search: "탐색 방법", beam: "꼼꼼하게 (빔 탐색)", greedy: "빠르게 (탐욕 탐색)",
    busy: "번역하는 중 …", progress: "문장 {all}개 중 {done}개", best: "상위 번역",
    about: "이 모델에 대하여", copy: "복사", copied: "복사했습니다", unfinished: "미완성",
    empty: "(비어 있음)", quotes: "‘’", separator: ", ", tooLong: "처음 {count}자까지만 번역합니다.",
    open: "안을 들여다보기", close: "닫기", hint: "단어를 가리키면 어느 원문 단어에서 왔는지 보입니다.",
    keys: "화살표 키로 옮겨 다니고 Esc 키로 나갑니다.",
    aligned: "{word}에 정렬된 원문 단어: {others}", attendedTo: "{word}에 주목한 번역문 단어: {others}",
    nothing: "뚜렷한 단어 없음", noAlignment: "이 모델에는 정렬 정보가 없습니다.",
    bestOnly: "정렬은 가장 좋은 번역에만 있습니다.",
    truncated: "모델이 읽거나 쓸 수 있는 길이를 넘어 일부가 빠졌습니다.",
    steps: "단계마다 단어 하나 또는 그 일부를 씁니다", weights: "주목하는 단어(α): 움직여 보세요",
    candidates: "대신 쓸 수 있는 단어: 골라 보세요", gates: "게이트(유닛 평균)", width: "빔 너비",
    undo: "되돌리기", leftOut: "뺀 단어: {words}", leaveOut: "{word} 빼기",
  },
  ja: {
    language: "日本語", title: "翻訳", text: "翻訳する文章", submit: "翻訳", shortcut: "または Ctrl + Enter",
    search: "探索方法", beam: "丁寧に（ビームサーチ）", greedy: "速く（貪欲法）", busy: "翻訳中 …",
    progress: "{all}文のうち{done}文", best: "上位の訳文", about: "このモデルについて", copy: "コピー",
    copied: "コピーしました", unfinished: "未完", empty: "（空）", quotes: "「」", separator: "、",
    tooLong: "先頭の {count} 文字だけを翻訳します。", open: "中をのぞく", close: "閉じる",
    hint: "単語を指すと、原文のどの単語から来たかがわかります。", keys: "矢印キーで移動、Esc で抜けます。",
    aligned: "{word}に対応する原文の単語：{others}", attendedTo: "{word}に注目した訳文の単語：{others}",
    nothing: "特になし", noAlignment: "このモデルにはアラインメントがありません。",
    bestOnly: "アラインメントは最良の訳文にのみあります。",
    truncated: "モデルが読み書きできる長さを超えたため、一部が欠けています。",
    steps: "ステップごとに、単語かその一部を書きます", weights: "注目する単語（α）：動かせます",
    candidates: "ほかの候補：選べます", gates: "ゲート（ユニットの平均）", width: "ビーム幅",
    undo: "元に戻す", leftOut: "除いた単語：{words}", leaveOut: "{word}を除く",
  },
};

export const $ = (id) => document.getElementById(id);
let words = WORDS.en; // of the page's language

// Makes a language that of the page.
export function setLanguage(language) {
  words = { ...WORDS[language], code: language };
}

// A text in the page's language, with values in its places.
export const said = (name, values = {}) =>
  words[name].replace(/\{(\w+)\}/g, (_, value) => values[value]);

// One of the texts that are given by language, such as the reasons of doubts.
export const told = (texts, name) => texts[words.code]?.[name] ?? name;

const segmenters = ["word", "grapheme"].map((granularity) =>
  new Intl.Segmenter("en", { granularity }));

// The words of a text, and what is between them; or its letters, each with its marks.
export const segmentsOf = (text, areLetters = false) => [...segmenters[+areLetters].segment(text)];

export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}
