// Requests translations from the model server and shows what each word was
// aligned to. The address may contain a text: index.html#the%20text.

const MODEL = "v1/models/translator";
const TIMEOUT = 60_000; // milliseconds
const LEAST_SHARE = 0.05; // smaller shares are not shown
const ABSENT = -1e8; // a smaller score marks an entry without a translation

const $ = (id) => document.getElementById(id);

let signatures; // a promise of the names of the model's signatures
let asked; // the AbortController of the current request

// The server.

async function fetchJson(path, options = {}) {
  const reply = await fetch(path, options);
  const body = await reply.text();
  let found;
  try {
    found = JSON.parse(body);
  } catch {
    throw new Error(`The server does not answer (${reply.status}).`);
  }
  if (!reply.ok) throw new Error(found.error ?? `Error ${reply.status}.`);
  return found;
}

async function signatureNames() {
  const found = await fetchJson(`${MODEL}/metadata`);
  return Object.keys(found.metadata.signature_def.signature_def);
}

// The rows of a signature's outputs for one text: `{name: value}`.
async function predict(signature, text, signal) {
  const { outputs } = await fetchJson(`${MODEL}:predict`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ signature_name: signature, inputs: { text: [text] } }),
    signal,
  });
  return Object.fromEntries(
    Object.entries(outputs).map(([name, rows]) => [name, rows[0]]),
  );
}

// For each byte of a text's UTF-8, the position of its character in the string,
// counted in UTF-16 units as JavaScript does; and last, the string's length.
export function positions(text) {
  const found = [];
  let position = 0;
  for (const character of text) {
    const bytes = new TextEncoder().encode(character).length;
    for (let byte = 0; byte < bytes; byte++) found.push(position);
    position += character.length;
  }
  found.push(position);
  return found;
}

// The parts of a text that the user can point at: `{start, end, tokens}`, in
// order. Tokens that share characters, as sub-words may, form one part. A token
// without a whole character (a blank, or a byte that is not the last of its
// character) belongs to the next part. If `ended`, the last token is the end
// symbol, a part without characters.
export function partsOf(text, offsets, count, ended) {
  const at = positions(text);
  const last = at.length - 1;
  const words = ended ? count - 1 : count;
  const parts = [];
  const order = [...Array(words).keys()].sort(
    (a, b) => offsets[a][0] - offsets[b][0] || offsets[a][1] - offsets[b][1],
  );
  let waiting = [];
  for (const token of order) {
    const [start, end] = offsets[token].map((byte) => at[Math.min(byte, last)]);
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
  if (ended) parts.push({ start: text.length, end: text.length, tokens: [words] });
  return parts;
}

// `shares[t][s]`, the weight with which target part t was aligned to source part
// s: summed over the tokens of s, and averaged over the tokens of t.
export function sharesOf(weights, targets, sources) {
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
  return targets.map((target) =>
    sources.map(
      (source) =>
        sum(target.tokens.map((t) => sum(source.tokens.map((s) => weights[t][s])))) /
        target.tokens.length,
    ),
  );
}

// The page.

// Writes a text, each part as an element to point at; returns these elements.
function writeParts(place, text, parts) {
  let position = 0;
  place.replaceChildren();
  const words = parts.map((part) => {
    place.append(text.slice(position, part.start));
    const word = document.createElement("span");
    word.className = "word";
    word.tabIndex = 0;
    word.setAttribute("role", "button");
    word.setAttribute("aria-describedby", "detail");
    word.textContent = text.slice(part.start, part.end);
    if (part.start === part.end) {
      word.classList.add("symbol");
      word.textContent = "[END]";
    }
    place.append(word);
    position = part.end;
    return word;
  });
  place.append(text.slice(position));
  return words;
}

function clearMarks() {
  for (const word of document.querySelectorAll(".word")) {
    word.classList.remove("chosen", "aligned", "strongest");
  }
}

// Marks what the chosen word was aligned to, and describes it in words.
function mark(chosen, others, shares, verb) {
  clearMarks();
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
  const quoted = (word) => `\u2068“${word.textContent}”\u2069`;
  const listed = order.map((i) => `${quoted(others[i])} ${Math.round(shares[i] * 100)} %`);
  $("detail").textContent =
    `${quoted(chosen)} ${verb} ${listed.join(", ") || "no word in particular"}`;
}

function showAlignment(found, text) {
  const sources = partsOf(text, found.source_offsets, found.source_length, true);
  // Exports of earlier versions lack the output `finished`.
  const ended = found.target_length > 0 && (found.finished ?? !found.truncated);
  const targets = partsOf(
    found.translation, found.target_offsets, found.target_length, ended,
  );
  const shares = sharesOf(found.weights, targets, sources);
  const sourceWords = writeParts($("source"), text, sources);
  const targetWords = writeParts($("translation"), found.translation, targets);
  const listen = (words, show) =>
    words.forEach((word, i) => {
      for (const event of ["mouseenter", "focus", "click"]) {
        word.addEventListener(event, () => show(word, i));
      }
    });
  listen(targetWords, (word, t) =>
    mark(word, sourceWords, shares[t], "was aligned to"));
  listen(sourceWords, (word, s) =>
    mark(word, targetWords, shares.map((row) => row[s]), "was looked at for"));
  $("detail").textContent = "Point at a word, or move to it with Tab.";
}

function showPlain(translation, text) {
  $("translation").textContent = translation;
  $("source").textContent = text;
  $("detail").textContent = "";
}

function show(text, choice, aligned, truncated) {
  const isAligned = aligned?.translation === choice;
  if (isAligned) showAlignment(aligned, text);
  else showPlain(choice, text);
  const notes = [];
  if (aligned && !isAligned) {
    notes.push("The alignment is known for the best translation only.");
  }
  if (!aligned) notes.push("This model has no alignment.");
  if (truncated) {
    notes.push("Longer than this model reads or writes: a part is missing.");
  }
  $("note").textContent = notes.join(" ");
}

function showChoices(found, choose) {
  const choices = found.translations.filter((_, i) => found.scores[i] > ABSENT);
  $("list").replaceChildren(
    ...choices.map((translation, i) => {
      const label = document.createElement("label");
      const radio = document.createElement("input");
      radio.type = "radio";
      radio.name = "choice";
      radio.checked = i === 0;
      radio.addEventListener("change", () => choose(translation));
      const text = document.createElement("bdi");
      text.textContent = translation || "(empty)";
      const score = document.createElement("span");
      score.className = "score";
      const unfinished = found.finished?.[i] === false ? "unfinished, " : "";
      score.textContent = unfinished + found.scores[i].toFixed(2);
      label.append(radio, text, score);
      return label;
    }),
  );
  $("choices").hidden = choices.length < 2;
}

async function translate(text) {
  asked?.abort();
  const own = (asked = new AbortController());
  const signal = AbortSignal.any([own.signal, AbortSignal.timeout(TIMEOUT)]);
  $("error").hidden = true;
  $("status").textContent = "Translating …";
  try {
    signatures ??= signatureNames();
    const hasAlignment = (await signatures).includes("align");
    const [best, aligned] = await Promise.all([
      predict("n_best", text, signal),
      hasAlignment ? predict("align", text, signal) : undefined,
    ]);
    if (own !== asked) return;
    const truncated = best.truncated || Boolean(aligned?.truncated);
    const choose = (choice) => show(text, choice, aligned, truncated);
    showChoices(best, choose);
    choose(best.translations[0]);
    $("result").hidden = false;
  } catch (error) {
    if (own !== asked) return;
    signatures = undefined;
    $("result").hidden = true;
    $("error").hidden = false;
    $("error").textContent =
      error.name === "TimeoutError" ? "No answer within a minute."
      : error instanceof TypeError ? "The server cannot be reached."
      : error.message;
  }
  $("status").textContent = "";
}

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  // Half a surrogate pair becomes U+FFFD, as in the UTF-8 that is sent.
  const text = $("text").value.toWellFormed();
  history.replaceState(null, "", `#${encodeURIComponent(text)}`);
  translate(text);
});

$("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    $("form").requestSubmit();
  }
});

if (location.hash.length > 1) {
  try {
    $("text").value = decodeURIComponent(location.hash.slice(1));
    $("form").requestSubmit();
  } catch {
    // The address is not percent-encoded text: somebody typed it.
  }
}
