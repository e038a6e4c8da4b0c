// The window into the model: how a sentence was translated, and what it would be otherwise.

import { $, element, said, segmentsOf, told } from "./words.js";

const label = (token) => token.replaceAll("\u2581", " ").trim() || "␣";
const percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}%`;

// A row of a list with a bar whose width is a share.
function bar(share, ...children) {
  const row = element("li", {}, ...children);
  row.style.setProperty("--p", 100 * share);
  return row;
}

// The words of one text and of another, `[kind, word]`: "del" for those of the first alone, "ins"
// for those of the second, "span" for those of both.
export function compared(first, second) {
  const [a, b] = [first, second].map((text) => segmentsOf(text).map(({ segment }) => segment));
  const common = Array.from({ length: a.length + 1 }, () => Array(b.length + 1).fill(0));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i][j] = a[i] === b[j] ? common[i + 1][j + 1] + 1
        : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  const words = [];
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    if (a[i] === b[j]) words.push(["span", (j++, a[i++])]);
    else if (j === b.length || common[i + 1]?.[j] >= common[i][j + 1]) words.push(["del", a[i++]]);
    else words.push(["ins", b[j++]]);
  }
  return words;
}

// Weights that sum to 1, in which those of some tokens have a share; the others keep their ratios.
export function moved(weights, tokens, share) {
  const isOf = (i) => tokens.includes(i), count = weights.length;
  const now = tokens.reduce((sum, i) => sum + weights[i], 0), rest = 1 - now;
  return weights.map((x, i) =>
    isOf(i) ? (now > 1e-6 ? (x * share) / now : share / tokens.length)
      : rest > 1e-6 ? (x * (1 - share)) / rest : (1 - share) / (count - tokens.length));
}

// A text without the word of a part; the marks beside it stay.
export function without(text, { start, end }) {
  const { 0: word, index } = /[\p{L}\p{N}](?:.*[\p{L}\p{N}])?|.+/u.exec(text.slice(start, end));
  const before = text.slice(0, start + index), after = text.slice(start + index + word.length);
  return (/(^|\s)$/.test(before) ? before + after.trimStart() : before + after).trim();
}

export class Panel {
  // `inside(text, search, edit, signal)` promises a translation with its steps and its tree, if the
  // page has a model; `show` writes a sentence again; `texts` are those of drawings, and `gates`
  // the equation of the gates.
  constructor({ inside, show, texts, gates }) {
    Object.assign(this, { inside, show, texts, step: 0, isOpen: false });
    const heads = (this.heads = {});
    const headed = (name) => (heads[name] = element("h2"));
    this.changes = element("p", { className: "changes" });
    this.steps = element("fieldset", { className: "steps" });
    [this.weights, this.words, this.gates] = [1, 2, 3].map(() => element("ol"));
    this.weights.className = "weights";
    this.width = element("input", { type: "range", min: 1, max: 12, id: "width" });
    this.width.oninput = () =>
      this.change({ ...this.sentence.edit, beam_size: +this.width.value }, "width");
    heads.width = element("label", { htmlFor: "width" });
    this.beam = element("output", { htmlFor: "width" });
    heads.tree = element("summary");
    this.tree = element("section", { className: "bahdanau-tf-tree", tabIndex: 0 });
    this.best = element("fieldset", { className: "best" });
    this.own = element("div", { hidden: true }, this.changes, this.steps,
      element("div", {}, headed("weights"), this.weights),
      element("div", {}, headed("candidates"), this.words, headed("gates"), this.gates,
        element("small", { textContent: gates })),
      element("p", { className: "row" }, heads.width, this.width, this.beam),
      element("details", {}, heads.tree, this.tree));
    this.place = element("section", { className: "panel" }, this.own, this.best);
  }

  close() {
    this.isOpen = false;
    this.place.remove();
  }

  // Opens below a sentence, at the step of one of its tokens.
  open(sentence, token) {
    this.isOpen = true;
    if (this.sentence !== sentence) this.step = 0;
    if (token !== undefined) this.step = sentence.chosen.order?.[token] ?? 0;
    this.sentence = sentence;
    if (this.place.parentNode !== sentence.place) sentence.place.append(this.place);
    if (this.inside && !sentence.reply.inside) return this.translate(sentence.edit);
    return this.draw();
  }

  // Changes the sentence; the moves of a slider are one change.
  change(edit, slider, read = this.sentence.read) {
    const { sentence } = this, { past } = sentence;
    if (!slider || past.at(-1)?.slider !== slider) {
      past.push({ slider, edit: sentence.edit, read: sentence.read });
    }
    return this.translate(edit, read);
  }

  // Translates the sentence again, as changed; the newest change wins.
  async translate(edit, read = this.sentence.read) {
    const { sentence } = this;
    this.request?.abort();
    const { signal } = (this.request = new AbortController());
    Object.assign(sentence, { edit, read });
    try {
      const reply = await this.inside(read, sentence.search, edit, signal);
      signal.throwIfAborted();
      Object.assign(sentence, { reply, chosen: reply.translations[0] });
      if (!edit.prefix) sentence.best = reply.translations;
      this.show(sentence);
      if (this.sentence === sentence) this.draw();
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  // What comes before a step stays, and so do the weights up to there, with `row` in the step.
  changeAt(ids, row, slider) {
    const { step, sentence: { chosen, edit } } = this;
    const rows = Object.entries({ ...edit.attention, ...(row && { [step]: row }) });
    this.change({
      ...edit, prefix: [...chosen.ids.slice(0, step), ...ids],
      attention: Object.fromEntries(rows.filter(([time]) => time <= step)),
    }, slider);
  }

  draw() {
    const { place, heads, sentence: { reply: { inside } } } = this, { activeElement } = document;
    const control = place.contains(activeElement) && activeElement.dataset.control;
    this.own.hidden = !inside?.steps.length;
    if (!this.own.hidden) {
      for (const name in heads) if (name !== "tree") heads[name].textContent = said(name);
      heads.tree.textContent =
        told(this.texts, "Beam search, width {}").replace("{}", inside.beam);
      this.step = Math.min(this.step, inside.steps.length - 1);
      this.width.value = this.beam.value = inside.beam;
      this.drawChanges();
      this.drawSteps(inside.steps);
      this.drawStep(inside.steps[this.step]);
      this.drawTree(inside.tree);
    }
    this.drawBest();
    if (!control) return;
    [control, "undo", `step${this.step}`] // the first that is there
      .map((name) => place.querySelector(`[data-control="${name}"]`))
      .find((x) => x?.checkVisibility({ visibilityProperty: true }))?.focus();
  }

  // What differs from the first translation.
  drawChanges() {
    const { source, read, first, chosen, past } = this.sentence;
    this.changes.hidden = !past.length;
    const words = compared(first.translations[0].text, chosen.text);
    const lost = compared(source, read).flatMap(([kind, word]) => (kind === "del" && word.trim()) || []);
    const undo = element("button", { className: "plain", textContent: said("undo") });
    undo.dataset.control = "undo";
    undo.onclick = () => {
      const { edit: before, read: text } = past.pop() ?? this.sentence;
      this.translate(before, text);
    };
    this.changes.replaceChildren(
      element("span", {}, ...words.map(([kind, word]) => element(kind, { textContent: word }))), " ",
      lost.length ? said("leftOut", { words: lost.join(said("separator")) }) : "", " ", undo);
  }

  drawSteps(steps) {
    this.steps.replaceChildren(
      element("legend", { textContent: said("steps") }),
      ...steps.map(({ token }, i) => {
        const radio = element("input", { type: "radio", name: "step", checked: i === this.step });
        radio.dataset.control = `step${i}`;
        radio.onchange = () => {
          this.step = i;
          this.draw();
        };
        return element("label", {}, radio, element("bdi", { textContent: label(token) }));
      }),
    );
  }

  drawStep({ id, candidates, weights, gates }) {
    const { sentence } = this, [, parts] = sentence.parts;
    this.words.replaceChildren(...candidates.map(({ id: word, token, probability }, i) => {
      const button = element("button", { ariaPressed: word === id },
        element("bdi", { textContent: label(token) }),
        element("span", { textContent: percent(probability) }));
      button.dataset.control = `word${i}`;
      button.onclick = () => this.changeAt([word]);
      return bar(probability, button);
    }));
    this.gates.replaceChildren(...Object.entries(gates).map(([name, mean]) =>
      bar(mean, element("span", { textContent: name }), mean.toFixed(2))));
    const row = { weights };
    const sums = () => parts.map(({ tokens }) => tokens.reduce((sum, t) => sum + row.weights[t], 0));
    // A slider that is being moved stays the same element.
    if (this.read !== sentence.read) this.weights.replaceChildren();
    this.read = sentence.read;
    const update = () => sums().forEach((share, i) => {
      const [, slider, number] = this.weights.children[i].children;
      slider.value = 100 * share;
      number.textContent = percent(share);
    });
    const wordOf = ({ start, end }) => sentence.read.slice(start, end);
    if (!this.weights.children.length) {
      this.weights.append(...parts.map((part, i) => {
        const word = wordOf(part), disabled = !word || parts.length < 3; // a word and the end stay
        const slider = element("input", { type: "range", ariaLabel: word || "[END]" });
        slider.dataset.control = `weight${i}`;
        const cut = element("button", { className: "plain", textContent: "✕", disabled });
        cut.dataset.control = `cut${i}`;
        return element("li", {}, element("bdi", { textContent: word || "[END]" }), slider,
          element("span"), cut);
      }));
    }
    parts.forEach((part, i) => {
      const [, slider, , cut] = this.weights.children[i].children;
      slider.oninput = () => {
        row.weights = moved(row.weights, part.tokens, slider.value / 100);
        update();
        this.changeAt([], row.weights, `${this.step} ${i}`);
      };
      cut.ariaLabel = said("leaveOut", { word: wordOf(part) });
      // Another source has another translation and another α: of the changes the width stays.
      cut.onclick = () => {
        const { beam_size } = sentence.edit;
        this.change(beam_size ? { beam_size } : {}, undefined, without(sentence.read, part));
      };
    });
    update();
  }

  // As `BeamTree.view` draws it, with the same style sheet.
  drawTree(tree) {
    const rows = Math.max(...tree.map((level) => level.length)), svg = $("drawing").cloneNode(true);
    const [line] = svg.children, nodes = [];
    svg.removeAttribute("id");
    svg.setAttribute("viewBox", `0 0 ${tree.length} ${rows}`);
    svg.replaceChildren();
    tree.forEach((level, i) => level.forEach(({ token, parent, logProb, score, cut, isBest }, j) => {
      const ends = { x1: i - 0.1, y1: parent + 0.5, x2: i + 0.1, y2: j + 0.5 };
      const node = element("p"), drawn = [node];
      if (parent >= 0) svg.append((drawn[1] = line.cloneNode()));
      for (const name in ends) drawn[1]?.setAttribute(name, ends[name]);
      if (isBest || cut) for (const x of drawn) x.dataset[isBest ? "best" : "cut"] = "";
      node.style.gridArea = `${j + 1}/${i + 1}`;
      const value = `log p ${logProb.toFixed(2)}` +
        (score === undefined ? "" : `; ${told(this.texts, "Score")} ${score.toFixed(2)}`);
      const reason = cut || (score === undefined ? "" : "the translation");
      const small = element("small", {}, value);
      if (reason) small.append(element("br"), told(this.texts, reason));
      node.append(element("bdi", { textContent: label(token) }), small);
      nodes.push(node);
    }));
    const columns = element("div", {}, svg, ...nodes);
    columns.style.width = `${10 * tree.length}rem`;
    columns.style.gridTemplateColumns = `repeat(${tree.length}, 10rem)`;
    this.tree.replaceChildren(columns);
    this.tree.ariaLabel = this.heads.tree.textContent;
  }

  // The n best translations; the chosen one is translated step by step, if the page has a model.
  drawBest() {
    const { sentence } = this, { chosen, reply, best = reply.translations } = sentence;
    this.best.hidden = best.length < 2;
    this.place.hidden = this.own.hidden && this.best.hidden; // nothing was searched
    this.best.replaceChildren(element("legend", { textContent: said("best") }), ...best.map((x, i) => {
      const checked = x === chosen || (x.text === chosen.text && x.score === chosen.score);
      const radio = element("input", { type: "radio", name: "best", checked });
      radio.dataset.control = `best${i}`;
      radio.onchange = () => {
        if (this.inside) this.change({ ...sentence.edit, prefix: x.ids, attention: {} });
        else this.show(Object.assign(sentence, { chosen: x }));
      };
      const score = (x.finished ? "" : `${said("unfinished")}, `) + x.score.toFixed(2);
      return element("label", {}, radio, element("bdi", { textContent: x.text || said("empty") }),
        element("span", { className: "score", textContent: score }));
    }));
  }
}
