// What a page shows: a form, translations, and what each word was aligned to. The playground of
// `export/` and the page that translates by itself start it with functions of their own. The
// address may contain a text: index.html#the%20text.

import { sentencesOf } from "./sentences.js";

const LEAST_SHARE = 0.05; // smaller shares are not shown
const SHOWN = 20; // characters of a sentence that has a doubt
const PATIENCE = 300; // milliseconds after a key, before a text is translated as it is written

const WORDS = {
  en: {
    language: "English", title: "Translation", text: "Text to translate", submit: "Translate",
    shortcut: "or Ctrl + Enter", search: "Search", beam: "thorough (beam search)",
    greedy: "fast (greedy search)", busy: "Translating …", target: "Translation",
    progress: "{done} of {all} sentences", source: "Original text", about: "About this model",
    best: "The best translations, with their scores", unfinished: "unfinished", empty: "(empty)",
    quotes: "“”", separator: ", ", hint: "Point at a word, click on it or move to it with Tab.",
    aligned: "{word} was aligned to {others}", attendedTo: "{word} was attended to for {others}",
    nothing: "no word in particular", noAlignment: "This model has no alignment.",
    bestOnly: "The alignment is known for the best translation only.",
    truncated: "Longer than this model can read or write: part of it is missing.",
  },
  ko: {
    language: "한국어", title: "번역", text: "번역할 글", submit: "번역", shortcut: "또는 Ctrl + Enter",
    search: "탐색 방법", beam: "꼼꼼하게 (빔 탐색)", greedy: "빠르게 (탐욕 탐색)",
    busy: "번역하는 중 …", progress: "문장 {all}개 중 {done}개", target: "번역문", source: "원문",
    best: "상위 번역과 점수", about: "이 모델에 대하여", unfinished: "미완성", empty: "(비어 있음)",
    quotes: "‘’", separator: ", ", hint: "단어에 마우스를 올리거나 누르거나 Tab 키로 옮겨 다녀 보세요.",
    aligned: "{word}에 정렬된 원문 단어: {others}", attendedTo: "{word}에 주목한 번역문 단어: {others}",
    nothing: "뚜렷한 단어 없음", noAlignment: "이 모델에는 정렬 정보가 없습니다.",
    bestOnly: "정렬은 가장 좋은 번역에만 있습니다.",
    truncated: "모델이 읽거나 쓸 수 있는 길이를 넘어 일부가 빠졌습니다.",
  },
  ja: {
    language: "日本語", title: "翻訳", text: "翻訳する文章", submit: "翻訳", shortcut: "または Ctrl + Enter",
    search: "探索方法", beam: "丁寧に（ビームサーチ）", greedy: "速く（貪欲法）", busy: "翻訳中 …",
    progress: "{all}文のうち{done}文", target: "訳文", source: "原文", best: "上位の訳文とスコア",
    about: "このモデルについて", unfinished: "未完", empty: "（空）", quotes: "「」", separator: "、",
    hint: "単語にマウスを重ねるかクリックするか、Tab キーで移動してください。", nothing: "特になし",
    aligned: "{word}に対応する原文の単語：{others}", attendedTo: "{word}に注目した訳文の単語：{others}",
    noAlignment: "このモデルにはアラインメントがありません。",
    bestOnly: "アラインメントは最良の訳文にのみあります。",
    truncated: "モデルが読み書きできる長さを超えたため、一部が欠けています。",
  },
};

const $ = (id) => document.getElementById(id);
let words = WORDS.en; // of the page's language
let reasons; // why a translation may be wrong: texts by language and kind
let sentences = []; // that are shown: `{source, reply, chosen, places, notes}`
let listed; // the one whose translations can be chosen

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

// For each byte of a text's UTF-8, the position of its character in the string, counted in UTF-16
// units as JavaScript does; and last, the string's length.
export function positions(text) {
  const places = [];
  let position = 0;
  for (const character of text) {
    for (const _ of new TextEncoder().encode(character)) places.push(position);
    position += character.length;
  }
  return [...places, position];
}

// The parts of a text that the user can point at: `{start, end, tokens}`, in order, of the offsets
// of `count` tokens in bytes. Tokens that share characters, as sub-words may, form one part. A
// token without a whole character (a space, or a byte that is not the last of its character)
// belongs to the next part. If `ended`, the last token is the end symbol, without characters.
export function partsOf(text, offsets, count, ended) {
  const at = positions(text);
  const last = ended ? count - 1 : count;
  const places = offsets.slice(0, last).map((offset, token) => {
    const [start, end] = offset.map((byte) => at[Math.min(byte, at.length - 1)]);
    const word = text.slice(start, end);
    const skipped = word.length - word.trimStart().length;
    const length = Math.max(word.trimEnd().length, skipped);
    return { token, start: start + skipped, end: start + length };
  });
  places.sort((a, b) => a.start - b.start || a.end - b.end);
  const parts = [];
  let waiting = [];
  for (const { token, start, end } of places) {
    const before = parts.at(-1);
    waiting.push(token);
    if (start === end) continue;
    if (before && start < before.end) {
      before.end = Math.max(before.end, end);
      before.tokens.push(...waiting);
    } else {
      parts.push({ start, end, tokens: waiting });
    }
    waiting = [];
  }
  parts.at(-1)?.tokens.push(...waiting);
  if (ended) parts.push({ start: text.length, end: text.length, tokens: [last] });
  return parts;
}

// `shares[t][s]`, the weight with which target part t was aligned to source part s: summed over
// the tokens of s, and averaged over the tokens of t.
export function sharesOf(weights, targets, sources) {
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
  return targets.map(({ tokens }) =>
    sources.map((source) =>
      sum(tokens.map((t) => sum(source.tokens.map((s) => weights[t][s])))) / tokens.length));
}

// Writes a text, each part as an element to point at; returns these elements.
function writeParts(place, text, parts) {
  let position = 0;
  place.replaceChildren();
  const elements = parts.map(({ start, end }) => {
    place.append(text.slice(position, start));
    const isEnd = start === end;
    const word = element("span", {
      className: isEnd ? "word symbol" : "word", tabIndex: 0, role: "button",
      textContent: isEnd ? "[END]" : text.slice(start, end),
    });
    word.setAttribute("aria-describedby", "detail");
    place.append(word);
    position = end;
    return word;
  });
  place.append(text.slice(position));
  return elements;
}

// Marks what the chosen word was aligned to, and describes it in words.
function mark(chosen, others, shares, sentence) {
  const marks = ["chosen", "aligned", "strongest"];
  for (const word of document.querySelectorAll(".word")) word.classList.remove(...marks);
  chosen.classList.add("chosen");
  const order = [...others.keys()]
    .filter((i) => shares[i] >= LEAST_SHARE)
    .sort((a, b) => shares[b] - shares[a]);
  for (const i of order) {
    others[i].classList.add("aligned");
    others[i].style.setProperty("--share", Math.min(shares[i], 1));
  }
  if (order.length) others[order[0]].classList.add("strongest");
  // U+2068 and U+2069 keep words of other scripts apart.
  const [open, close] = words.quotes;
  const quoted = (word) => `\u2068${open}${word.textContent}${close}\u2069`;
  const aligned = order.map((i) => `${quoted(others[i])} ${Math.round(shares[i] * 100)}%`);
  const texts = { "{word}": quoted(chosen), "{others}": aligned.join(words.separator) || words.nothing };
  $("detail").textContent = sentence.replace(/\{\w+\}/g, (name) => texts[name]);
}

function showAlignment(sentence) {
  const { source, reply, places, chosen: { text, offsets, weights, finished } } = sentence;
  const sources = partsOf(source, reply.offsets, weights[0].length, true);
  const targets = partsOf(text, offsets, weights.length, finished && weights.length > 0);
  const shares = sharesOf(weights, targets, sources);
  const sourceWords = writeParts(places.source, source, sources);
  const targetWords = writeParts(places.translation, text, targets);
  const listen = (elements, show) =>
    elements.forEach((word, i) => {
      word.onmouseenter = word.onfocus = word.onclick = () => show(word, i);
    });
  listen(targetWords, (word, t) => mark(word, sourceWords, shares[t], words.aligned));
  listen(sourceWords, (word, s) =>
    mark(word, targetWords, shares.map((row) => row[s]), words.attendedTo));
}

function show(sentence) {
  const { source, reply, chosen, places } = sentence;
  const isAligned = Boolean(chosen.weights?.length);
  places.translation.textContent = chosen.text;
  places.source.textContent = source;
  if (isAligned) showAlignment(sentence);
  if (!document.querySelector(".chosen")) $("detail").textContent = isAligned ? words.hint : "";
  const notes = (sentence.notes = []);
  if (!reply.hasAlignment) notes.push(words.noAlignment);
  else if (!isAligned && chosen !== reply.translations[0]) notes.push(words.bestOnly);
  if (reply.truncated) notes.push(words.truncated);
  const [open, close] = words.quotes;
  const about = sentences.length > 1 ? `\u2068${open}${source.slice(0, SHOWN)}${close}\u2069: ` : "";
  for (const { kind, detail } of chosen === reply.translations[0] ? reply.doubts ?? [] : []) {
    if (kind !== "cut") notes.push(`⚠ ${about}${reasons[words.code][kind].replace("{}", detail)}`);
  }
  $("note").textContent = [...new Set(sentences.flatMap((x) => x.notes))].join(" ");
}

function showChoices(sentence) {
  listed = sentence;
  const { translations } = sentence.reply;
  $("list").replaceChildren(
    ...translations.map((translation) => {
      const radio = element("input", {
        type: "radio", name: "choice", checked: translation === sentence.chosen,
        onchange: () => show(Object.assign(sentence, { chosen: translation })),
      });
      const unfinished = translation.finished ? "" : `${words.unfinished}, `;
      const score = unfinished + translation.score.toFixed(2);
      return element("label", {}, radio,
        element("bdi", { textContent: translation.text || words.empty }),
        element("span", { className: "score", textContent: score }));
    }),
  );
  $("choices").hidden = translations.length < 2;
}

let request; // the AbortController of the current request
let timer; // of the text that is being written

// Translates and shows a text, sentence by sentence.
async function run(translate) {
  clearTimeout(timer);
  request?.abort();
  const { signal } = (request = new AbortController());
  // Half a surrogate pair becomes U+FFFD, as in UTF-8.
  const text = $("text").value.toWellFormed();
  history.replaceState(null, "", `#${encodeURIComponent(text)}`);
  const pieces = text.trim().split(/(?<=\n)(?=.*\S)/).flatMap(sentencesOf);
  const all = pieces.length;
  $("error").hidden = true;
  if (!all) $("result").hidden = true;
  try {
    for (const [done, piece] of pieces.entries()) {
      const progress = words.progress.replace("{done}", done).replace("{all}", all);
      $("status").textContent = all > 1 ? `${words.busy} ${progress}` : words.busy;
      const source = piece.trimEnd(), space = piece.slice(source.length);
      const reply = await translate(source, $("search").value, signal);
      signal.throwIfAborted();
      const places = { source: element("span"), translation: element("span") };
      const sentence = { source, reply, chosen: reply.translations[0], places };
      for (const side in places) places[side].addEventListener("focusin", () => showChoices(sentence));
      if (!done) { // what was shown before remains until now
        sentences = [];
        for (const side in places) $(side).replaceChildren();
        showChoices(sentence);
        $("result").hidden = false;
      }
      const isJoined = done + 1 === all || /[。！？｡]$/.test(sentence.chosen.text);
      $("source").append(places.source, space);
      $("translation").append(places.translation, space.includes("\n") ? space : isJoined ? "" : " ");
      sentences.push(sentence);
      show(sentence);
    }
  } catch (error) {
    if (signal.aborted) return;
    $("result").hidden = true;
    $("error").hidden = false;
    $("error").textContent = error.message;
  }
  $("status").textContent = "";
}

function setLanguage(language) {
  words = { ...WORDS[language], code: language };
  document.documentElement.lang = language;
  document.title = words.title;
  for (const place of document.querySelectorAll("[data-words]")) {
    place.textContent = words[place.dataset.words];
  }
  $("search").ariaLabel = words.search;
  for (const option of $("search").options) option.textContent = words[option.value];
  sentences.forEach(show);
  if (listed) showChoices(listed);
}

// Starts a page. `translate(text, search, signal)` promises `{offsets, translations, hasAlignment,
// truncated}`: the offsets of the text's tokens, and for each translation `{text, score, finished,
// offsets, weights}`, the last two for all or the first one or none. With `searches`, of which the
// user chooses, a text is translated as it is written; `card` is a text; `texts` has, by language
// and kind, those of a reply's `doubts`.
export function start(translate, { searches = [], card = "", texts = {} } = {}) {
  reasons = texts;
  const translateAll = () => run(translate);
  const options = (values) => values.map((value) => element("option", { value }));
  $("language").append(...options(Object.keys(WORDS)));
  for (const option of $("language").options) option.textContent = WORDS[option.value].language;
  $("language").value = [...navigator.languages.map((x) => x.slice(0, 2)), "en"]
    .find((language) => language in WORDS);
  $("language").onchange = () => setLanguage($("language").value);
  $("search").append(...options(searches));
  $("search").hidden = !searches.length;
  $("search").onchange = translateAll;
  $("card").textContent = card;
  $("text").placeholder = card.split("\n\n")[1] ?? ""; // what the model translates, after its name
  $("about").hidden = !card;
  $("form").onsubmit = (event) => {
    event.preventDefault();
    translateAll();
  };
  $("text").onkeydown = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("form").requestSubmit();
  };
  $("text").oninput = () => {
    clearTimeout(timer);
    if (searches.length) timer = setTimeout(translateAll, PATIENCE);
  };
  setLanguage($("language").value);
  if (location.hash.length > 1) {
    try {
      $("text").value = decodeURIComponent(location.hash.slice(1));
      translateAll();
    } catch {
      // The address is not percent-encoded text: somebody typed it.
    }
  }
}
