// From a text to translations: beam search in steps, so that a page stays responsive.
//
//     score(y) = log p(y | x) / ((5 + |y|) / 6)^α + β Σ_j log(min(Σ_i α_ij, 1))

import { Model, selected } from "./model.js";
import { Subwords } from "./sentencepiece.js";

// The `count` best continuations of hypotheses by a word that is not barred, best first.
function continued(hypotheses, logits, words, barred, count) {
  const size = logits.length / hypotheses.length;
  const best = [];
  hypotheses.forEach((parent, k) => {
    const row = logits.subarray(k * size, (k + 1) * size);
    let largest = -Infinity, total = 0;
    for (let j = 0; j < size; j++) if (row[j] > largest) largest = row[j];
    for (let j = 0; j < size; j++) total += Math.exp(row[j] - largest);
    const shift = parent.logProb - largest - Math.log(total);
    for (let j = 0; j < size; j++) {
      const logProb = row[j] + shift;
      if (!(logProb > -Infinity) || (best.length === count && logProb <= best.at(-1).logProb)) continue;
      const id = words ? words[j] : j;
      if (barred.includes(id)) continue;
      let place = best.length;
      while (place && best[place - 1].logProb < logProb) place--;
      best.splice(place, 0, { parent, row: k, id, logProb });
      best.length = Math.min(best.length, count);
    }
  });
  return best;
}

// The n best translations of ids, which end with the end symbol; a beam of 1 is greedy. `pause` is
// awaited before each step.
async function searched(model, source, decoding, { pad, unk, eos }, pause) {
  const { beam_size: size, n_best: wanted, alpha, beta, min_length_ratio, max_length_ratio } = decoding;
  const longest = Math.max(1,
    Math.min(Math.floor(max_length_ratio * source.length + 1e-6), decoding.max_length));
  const shortest = Math.min(Math.ceil(min_length_ratio * source.length - 1e-6), longest);
  const penalty = (length) => ((5 + length) / 6) ** alpha;
  const forbidden = decoding.unknown === "forbid" ? [pad, unk] : [pad];
  const words = decoding.shortlist ? model.shortlist(source) : undefined;
  const byScore = (a, b) => b.score - a.score;
  const memory = model.encode(source);
  let live = [{ logProb: 0, id: 0, row: 0, covered: new Float32Array(source.length) }];
  let done = [], ended = 0, state = memory;
  for (let time = 1; live.length && time <= longest; time++) {
    await pause();
    const parents = live.map(({ row }) => row);
    state = {
      state: selected(state.state, parents, model.units),
      term: selected(state.term, parents, model.width),
    };
    const step = model.step(memory, live.map(({ id }) => id), state);
    state = step.state;
    const logits = model.logits(step.features, live.length, words);
    const barred = time < shortest ? [...forbidden, eos] : forbidden;
    const room = decoding.shrink ? size - ended : size;
    const next = continued(live, logits, words, barred, size).slice(0, room);
    for (const hypothesis of next) {
      hypothesis.weights = step.weights[hypothesis.row];
      hypothesis.score = hypothesis.logProb / penalty(time);
      if (!beta) continue;
      hypothesis.covered = hypothesis.parent.covered.map((x, t) => x + hypothesis.weights[t]);
      const logs = hypothesis.covered.map((x) => Math.log(Math.min(Math.max(x, 1e-6), 1)));
      hypothesis.score += beta * logs.reduce((a, b) => a + b);
    }
    const finished = next.filter(({ id }) => id === eos);
    for (const hypothesis of finished) hypothesis.finished = true;
    done = [...done, ...finished].sort(byScore).slice(0, wanted);
    ended += finished.length;
    live = next.filter(({ id }) => id !== eos);
    const least = done.length === wanted ? done.at(-1).score : -Infinity;
    const hopeful = live.filter(({ logProb }) => logProb / penalty(longest) > least);
    if (!decoding.shrink) live = hopeful;
    else if (!hopeful.length) break;
  }
  return [...done, ...live.sort(byScore)].slice(0, wanted);
}

export class Translator {
  constructor({ settings, arrays }) {
    this.decoding = settings.decoding;
    this.model = new Model({ settings, arrays });
    const text = (side) =>
      new Subwords(settings.texts[side], arrays[`${side}.scores`], arrays[`${side}.charsmap`]);
    this.source = text("source");
    this.target = text("target");
  }

  // What `start` of view.js shows of a text.
  async translate(text, options, pause = () => {}) {
    const { ids, offsets } = this.source.read(text);
    const decoding = { ...this.decoding, ...options };
    const hypotheses =
      ids.length > 1 ? await searched(this.model, ids, decoding, this.target, pause) : [];
    const order = [...offsets.keys()];
    const columns = [...(this.source.reverse ? order.reverse() : order), order.length];
    return {
      offsets: columns.slice(0, -1).map((column) => offsets[column]),
      translations: hypotheses.map((hypothesis) => this.written(hypothesis, columns)),
      hasAlignment: true,
      truncated: false,
    };
  }

  // A hypothesis as text; tokens are in the order in which they are read.
  written({ score, logProb, finished = false, ...last }, columns) {
    const ids = [], rows = [];
    for (let x = last; x.parent; x = x.parent) {
      ids.unshift(x.id);
      rows.unshift(x.weights);
    }
    const { text, offsets } = this.target.write(ids);
    const order = [...offsets.keys()];
    if (this.target.reverse) order.reverse();
    const rest = [...ids.keys()].slice(order.length);
    return {
      text, score, logProb, finished,
      offsets: order.map((row) => offsets[row]),
      weights: [...order, ...rest].map((row) => columns.map((column) => rows[row][column])),
    };
  }
}
