// What a page shows: a form, translations, and what each word was aligned to. The playground of
// `export/` and the page that translates by itself start it with functions of their own. The
// address may contain a text: index.html#the%20text.

import { Panel } from "./panel.js";
import { piecesOf } from "./sentences.js";
import { $, element, said, segmentsOf, setLanguage, told, WORDS } from "./words.js";

const LEAST_SHARE = 0.05; // smaller shares are not shown
const LONGEST = 50_000; // characters that are translated
const PAUSE = 60; // milliseconds after a key, before a text is translated as it is written
const PATIENCE = 300; // and before a page says that it is busy
const SILENCE = 1000; // and until a translation that stays is spoken, and its text is in the address
const TARGET = 24; // pixels of a word, at least

let options; // of `start`
let panel; // shows what is inside the chosen sentence
let current = {}; // the sentence and the token that were chosen last

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
// of `count` tokens in bytes: words with the marks beside them, or letters. Tokens that share a
// word, as sub-words do, form one part. A token without a whole character (a space, or a byte that
// is not the last of its character) belongs to the next part. If `ended`, the last token is the end
// symbol, without characters.
export function partsOf(text, offsets, count, ended, areLetters = false) {
  const at = positions(text), words = wordNumbers(text, areLetters);
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
    if (before && (start < before.end || words[start] === words[before.end - 1])) {
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

// For each unit of a text the number of its word or letter; marks belong to the word beside them.
function wordNumbers(text, areLetters) {
  const numbers = [];
  let number = 0, joins = false;
  for (const { segment, isWordLike } of segmentsOf(text, areLetters)) {
    const isBlank = !segment.trim(), isOpening = /^[\p{Ps}\p{Pi}¿¡]/u.test(segment);
    if (areLetters || isBlank || isOpening || (isWordLike && !joins)) number += 1;
    joins = isOpening;
    for (let i = 0; i < segment.length; i++) numbers.push(number);
    if (isBlank) number += 1;
  }
  return numbers;
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
      className: isEnd ? "word symbol" : "word", tabIndex: -1, role: "button",
      textContent: isEnd ? "[END]" : text.slice(start, end),
    });
    place.append(word);
    position = end;
    return word;
  });
  place.append(text.slice(position));
  return elements;
}

function unmark() {
  for (const word of document.querySelectorAll(".word")) {
    word.classList.remove("chosen", "aligned", "strongest");
  }
  $("detail").hidden = true;
}

// Marks what the chosen word was aligned to, and describes it in words where it is.
function mark(sentence, side, number) {
  unmark();
  const [words, others] = side ? [sentence.words[1], sentence.words[0]] : sentence.words;
  const shares = side ? sentence.shares.map((row) => row[number]) : sentence.shares[number];
  const chosen = words[number];
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
  const [open, close] = said("quotes");
  const quoted = (word) => `\u2068${open}${word.textContent}${close}\u2069`;
  const aligned = order.map((i) => `${quoted(others[i])} ${Math.round(shares[i] * 100)}%`);
  $("detail").textContent = said(side ? "attendedTo" : "aligned", {
    word: quoted(chosen), others: aligned.join(said("separator")) || said("nothing"),
  });
  $("detail").hidden = false;
  place($("detail"), chosen, side);
  return order[0] ?? 0;
}

// Puts a description above a word of the translation, or below one of the source, so that it hides
// neither of them; what would hide the button above is also below.
function place(detail, word, isBelow) {
  const box = word.getClientRects()[0], area = $("result").getBoundingClientRect();
  const left = Math.min(box.left - area.left, area.width - detail.offsetWidth);
  const above = box.top - 6 - detail.offsetHeight, button = $("open").getBoundingClientRect();
  const isHiding = above < button.bottom && left + area.left < button.right;
  const top = isBelow || isHiding ? word.getBoundingClientRect().bottom + 6 : above;
  Object.assign(detail.style, { left: `${Math.max(left, 0)}px`, top: `${top - area.top}px` });
}

// Makes a word the one stop of the Tab key in its sentence.
function stopAt(sentence, side, number) {
  for (const word of sentence.words.flat()) word.tabIndex = -1;
  sentence.words[side][number].tabIndex = 0;
  current = { sentence, token: side ? undefined : sentence.parts[0][number].tokens[0] };
}

function listen(sentence) {
  sentence.words.forEach((words, side) => words.forEach((word, i) => {
    word.onmouseenter = () => mark(sentence, side, i);
    word.onfocus = () => {
      stopAt(sentence, side, i);
      mark(sentence, side, i);
    };
    word.onblur = unmark;
    word.onclick = () => {
      word.focus();
      if (panel.isOpen) toggle(true);
    };
    word.onkeydown = (event) => move(event, sentence, side, i);
  }));
}

function move(event, sentence, side, i) {
  const { key, target } = event, { length } = sentence.words[side];
  const forward = getComputedStyle(target).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
  const to = (number) => sentence.words[side][Math.min(Math.max(number, 0), length - 1)].focus();
  if (key === "ArrowLeft" || key === "ArrowRight") to(key === forward ? i + 1 : i - 1);
  else if (key === "Home") to(0);
  else if (key === "End") to(length - 1);
  else if (key === "ArrowUp" || key === "ArrowDown") {
    sentence.words[1 - side][mark(sentence, side, i)].focus();
  } else if (key === "Enter" || key === " ") {
    panel.isOpen = true;
    target.click();
  } else if (key === "Escape") {
    target.blur();
  } else return;
  event.preventDefault();
}

// Opens the panel of the word that was chosen last, or closes it.
function toggle(isOpen) {
  const all = shownNow(), { sentence, token } = current;
  if (!isOpen) panel.close();
  else if (all.includes(sentence)) panel.open(sentence, token);
  else panel.open(all.find(({ words }) => words.length) ?? all[0]);
  nameButton();
}

// Says what the button does.
function nameButton() {
  $("open").ariaExpanded = panel.isOpen;
  $("open").textContent = said(panel.isOpen ? "close" : options.inside ? "open" : "best");
}

// Writes a sentence: its translation, its words to point at, and what is to be said of it.
function show(sentence) {
  const { read, reply, chosen, places } = sentence;
  const { text, offsets, weights, finished } = chosen, isAligned = Boolean(weights?.length);
  const focused = sentence.words?.map((words) => words.indexOf(document.activeElement)) ?? [];
  places.translation.lang = options.languages[1] ?? "";
  places.source.lang = options.languages[0] ?? "";
  if (isAligned) {
    sentence.parts = [
      partsOf(text, offsets, weights.length, finished, options.letters[1]),
      partsOf(read, reply.offsets, weights[0].length, true, options.letters[0]),
    ];
    sentence.shares = sharesOf(weights, ...sentence.parts);
    sentence.words = ["translation", "source"].map((side, i) =>
      writeParts(places[side], i ? read : text, sentence.parts[i]));
    listen(sentence);
    sentence.words.flat()[0].tabIndex = 0;
    const all = sentence.words.flat(), widths = all.map((word) => word.getBoundingClientRect().width);
    all.forEach((word, i) => {
      if (widths[i] < TARGET) word.style.paddingInline = `${(TARGET - widths[i]) / 2}px`;
    });
    focused.forEach((i, side) => sentence.words[side][i]?.focus());
  } else {
    sentence.words = [];
    places.translation.textContent = text;
    places.source.textContent = read;
  }
  const notes = [];
  if (!reply.hasAlignment) notes.push(said("noAlignment"));
  else if (!isAligned && chosen !== reply.translations[0]) notes.push(said("bestOnly"));
  if (reply.truncated) notes.push(said("truncated"));
  for (const { kind, detail } of chosen === reply.translations[0] ? reply.doubts ?? [] : []) {
    if (kind !== "cut") notes.push(`⚠ ${told(options.texts, kind).replace("{}", detail)}`);
  }
  places.note.textContent = notes.join(" ");
}

let request; // the AbortController of the current request
let timers = []; // of what will be done after a while
let speech; // the timer of what will be spoken

const later = (delay, work) => timers[timers.push(setTimeout(work, delay)) - 1];
const clearAll = () => [...timers.splice(0), speech].forEach(clearTimeout);
const shownNow = () => [...$("sentences").children].map((place) => place.sentence);

// The whole translation as text.
function whole() {
  const all = shownNow();
  return all.map(({ chosen: { text }, before, after, space }, i) => {
    const isJoined = i + 1 === all.length || /[。！？｡]$/.test(text);
    return before + text + after + (space.includes("\n") ? space : isJoined ? "" : " ");
  }).join("");
}

function fail(message) {
  $("error").hidden = !message;
  $("error").textContent = message;
}

// A new sentence, not yet in the page.
function made(key, source, search, reply) {
  const places = {
    translation: element("p", { className: "text translation", dir: "auto" }),
    source: element("p", { className: "text source", dir: "auto" }),
    note: element("p", { className: "note hint" }),
  };
  const place = element("div", { className: "sentence" }, ...Object.values(places));
  const chosen = reply.translations[0];
  return (place.sentence = {
    key, source, read: source, edit: {}, past: [], search, reply, first: reply, chosen, place, places,
  });
}

// Translates and shows a text, sentence by sentence. Sentences that were shown before stay, and
// others until there is something to show in their place.
async function run() {
  clearAll();
  request?.abort();
  const { signal } = (request = new AbortController());
  const { value } = $("text"), search = $("search").value;
  // Half a surrogate pair becomes U+FFFD, as in UTF-8.
  const text = value.slice(0, LONGEST).toWellFormed();
  // Browsers refuse more than some changes a second.
  later(SILENCE, () => history.replaceState(null, "", `#${encodeURIComponent(text)}`));
  fail(value.length > LONGEST ? said("tooLong", { count: LONGEST.toLocaleString() }) : "");
  const pieces = piecesOf(text.trim()), all = pieces.length;
  const keyOf = ([before, inside]) => `${search} ${before}${inside.trimEnd()}`, keys = new Set(pieces.map(keyOf));
  const list = $("sentences"), kept = shownNow().filter(({ key }) => keys.has(key));
  for (const { key, place } of shownNow()) place.classList.toggle("old", !keys.has(key));
  let progress = said("busy"), isLate = false;
  const tell = () => {
    if (isLate) $("status").textContent = progress;
  };
  const late = later(PATIENCE, () => {
    isLate = true;
    tell();
  });
  try {
    for (const [done, piece] of pieces.entries()) {
      if (all > 1) progress = `${said("busy")} ${said("progress", { done, all })}`;
      tell();
      const [before, inside, behind] = piece, source = inside.trimEnd(), after = behind.trimEnd();
      const key = keyOf(piece), space = (behind || inside).slice((after || source).length);
      const index = kept.findIndex((sentence) => sentence.key === key), isNew = index < 0;
      let sentence = kept[index];
      if (isNew) {
        sentence = made(key, source, search, await options.translate(source, search, signal));
        signal.throwIfAborted();
      } else kept.splice(index, 1);
      const old = list.children[done];
      const isFree = old && old !== sentence.place && !kept.includes(old.sentence);
      if (old !== sentence.place) list.insertBefore(sentence.place, old ?? null);
      const marks = /[.!?…。！？]+$/, { text: best } = sentence.chosen; // "(I know)." has one mark
      const own = after.replace(/^:/, options.colon);
      const written = marks.test(best) ? own.replace(marks, "") : own;
      Object.assign(sentence, { before, after: written, space });
      const { translation, source: below } = sentence.places;
      Object.assign(translation.dataset, { before, after: written });
      Object.assign(below.dataset, { before, after });
      sentence.place.classList.toggle("paragraph", /\n/.test(list.children[done - 1]?.sentence.space));
      $("result").hidden = false;
      if (isNew) show(sentence);
      if (isFree) {
        if (panel.sentence === old.sentence && panel.isOpen) panel.open(sentence);
        old.remove();
      }
    }
    while (list.children.length > all) list.lastChild.remove();
    $("result").hidden = !all;
    if (panel.isOpen && all && !panel.place.isConnected) toggle(true);
    speak();
  } catch (error) {
    if (signal.aborted) return;
    $("result").hidden = true;
    list.replaceChildren();
    fail(error.message);
  }
  clearTimeout(late);
  $("status").textContent = "";
}

// Lets a screen reader hear the translation, once it stays as it is.
function speak() {
  clearTimeout(speech);
  speech = setTimeout(() => {
    $("spoken").lang = options.languages[1] ?? "";
    $("spoken").textContent = whole();
  }, SILENCE);
}

function speakPage(language) {
  setLanguage(language);
  document.documentElement.lang = language;
  document.title = said("title");
  for (const place of document.querySelectorAll("[data-words]")) {
    place.textContent = said(place.dataset.words);
  }
  $("search").ariaLabel = said("search");
  for (const option of $("search").options) option.textContent = said(option.value);
  $("copy").textContent = said("copy");
  nameButton();
  $("hint").textContent = `${said("hint")} ${said("keys")}`;
  shownNow().forEach(show);
  if (panel.isOpen) panel.draw();
}

// The text of the page's address; one that is malformed is taken as it is.
function addressed() {
  return location.hash.slice(1).replace(/(?:%[0-9a-f]{2})+/gi, (escaped) => {
    try {
      return decodeURIComponent(escaped);
    } catch {
      return escaped;
    }
  });
}

// What the browser keeps for the page, if it does.
function stored(value) {
  try {
    if (value) localStorage.setItem("language", value);
    return localStorage.getItem("language");
  } catch {
    return null;
  }
}

// Starts a page. `translate(text, search, signal)` promises `{offsets, translations, hasAlignment,
// truncated}`: the offsets of the text's tokens, and for each translation `{text, score, finished,
// offsets, weights}`, the last two for all or the first one or none. With `searches`, of which the
// user chooses, a text is translated as it is written; `card` is a text; `texts` has, by language,
// those of drawings and of a reply's `doubts`; `languages` are the codes of source and target, if
// they are known; `letters` says of each whether its letters are pointed at, not its words; `colon`
// is what the target has behind a label; `inside` is that of `Panel`.
export function start(translate, given = {}) {
  const none = { searches: [], card: "", texts: {}, languages: [], letters: [], colon: ":" };
  options = { translate, ...none, ...given };
  panel = new Panel({
    ...options,
    show: (sentence) => {
      show(sentence);
      speak();
    },
  });
  const optionsOf = (values) => values.map((value) => element("option", { value }));
  $("language").append(...optionsOf(Object.keys(WORDS)));
  for (const option of $("language").options) option.textContent = WORDS[option.value].language;
  $("language").value = [stored(), ...navigator.languages.map((x) => x.slice(0, 2)), "en"]
    .find((language) => language in WORDS);
  $("language").onchange = () => speakPage(stored($("language").value) ?? $("language").value);
  $("search").append(...optionsOf(options.searches));
  $("search").hidden = !options.searches.length;
  $("search").onchange = run;
  $("card").textContent = options.card;
  $("text").placeholder = options.card.split("\n\n")[1] ?? ""; // what the model translates
  $("about").hidden = !options.card;
  $("form").onsubmit = (event) => {
    event.preventDefault();
    run();
  };
  $("text").onkeydown = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("form").requestSubmit();
  };
  $("text").oninput = () => {
    clearAll();
    if (options.searches.length) later(PAUSE, run);
  };
  $("copy").hidden = !navigator.clipboard;
  $("copy").onclick = async () => {
    await navigator.clipboard.writeText(whole());
    $("copy").textContent = said("copied");
    setTimeout(() => ($("copy").textContent = said("copy")), 2000);
  };
  $("open").onclick = () => toggle(!panel.isOpen);
  onkeydown = ({ key, target, defaultPrevented }) => {
    if (key !== "Escape" || defaultPrevented || !panel.isOpen || $("form").contains(target)) return;
    toggle(false);
    $("open").focus();
  };
  $("sentences").onmouseleave = () => {
    if (!document.activeElement.matches(".word")) unmark();
  };
  speakPage($("language").value);
  onhashchange = () => {
    if (addressed() === $("text").value) return;
    $("text").value = addressed();
    run();
  };
  if (location.hash.length > 1) onhashchange();
}
