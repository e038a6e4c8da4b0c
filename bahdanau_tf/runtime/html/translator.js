// From a text to translations: beam search in steps, so that a page stays responsive.
//
//     score(y) = log p(y | x) / ((5 + |y|) / 6)^α + β Σ_j log(min(Σ_i α_ij, 1))

import { Doubts } from "./doubts.js";
import { Model } from "./model.js";
import { Subwords } from "./sentencepiece.js";

// The `count` best continuations of hypotheses by a word that is not barred, best first.
function continued(hypotheses, logits, words, barred, count) {
  const best = [];
  hypotheses.forEach((parent, k) => {
    const row = logits[k];
    let largest = -Infinity, total = 0;
    for (let j = 0; j < row.length; j++) if (row[j] > largest) largest = row[j];
    for (let j = 0; j < row.length; j++) total += Math.exp(row[j] - largest);
    const shift = parent.logProb - largest - Math.log(total);
    for (let j = 0; j < row.length; j++) {
      const logProb = row[j] + shift;
      if (!(logProb > (best[count - 1]?.logProb ?? -Infinity))) continue;
      const id = words ? words[j] : j;
      if (barred.includes(id)) continue;
      let place = best.length;
      while (place && best[place - 1].logProb < logProb) place--;
      best.splice(place, 0, { parent, k, id, logProb });
      best.length = Math.min(best.length, count);
    }
  });
  return best;
}

// The n best translations of ids, which end with the end symbol; a beam of 1 is greedy. `pause` is
// awaited before each step.
async function searched(model, source, decoding, { pad, unk, eos }, pause) {
  const { beam_size: size, n_best: wanted, alpha, beta } = decoding;
  const limit = Math.floor(decoding.max_length_ratio * source.length + 1e-6);
  const longest = Math.min(Math.max(limit, decoding.least_limit), decoding.max_length);
  const shortest = Math.min(Math.ceil(decoding.min_length_ratio * source.length - 1e-6), longest);
  const penalty = (length) => ((5 + length) / 6) ** alpha;
  const forbidden = decoding.unknown === "forbid" ? [pad, unk] : [pad];
  const words = decoding.shortlist ? model.shortlist(source) : undefined;
  const byScore = (a, b) => b.score - a.score;
  const memory = await model.encode(source, pause);
  const { state, term } = memory;
  let live = [{ logProb: 0, id: 0, state, term, covered: new Float32Array(source.length) }];
  let done = [], ended = 0;
  for (let time = 1; live.length && time <= longest; time++) {
    await pause();
    const { features, after, contexts, alphas, odds } = model.step(memory, live);
    const barred = time < shortest ? [...forbidden, eos] : forbidden;
    const room = decoding.shrink ? size - ended : size;
    const logits = model.logits(features, words, odds);
    const next = continued(live, logits, words, barred, size).slice(0, room);
    for (const hypothesis of next) {
      const { parent, k, logProb } = hypothesis;
      const score = logProb / penalty(time);
      Object.assign(hypothesis, { state: after[k], term: contexts[k], weights: alphas[k], score });
      if (!beta) continue;
      hypothesis.covered = parent.covered.map((x, t) => x + alphas[k][t]);
      for (const x of hypothesis.covered) {
        hypothesis.score += beta * Math.log(Math.min(Math.max(x, 1e-6), 1));
      }
    }
    const finished = next.filter(({ id }) => id === eos);
    for (const hypothesis of finished) hypothesis.finished = true;
    done = [...done, ...finished].sort(byScore).slice(0, wanted);
    ended += finished.length;
    live = next.filter(({ id }) => id !== eos);
    const least = done[wanted - 1]?.score ?? -Infinity;
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
    for (const side of ["source", "target"]) {
      const { [`${side}.scores`]: scores, [`${side}.charsmap`]: charsmap } = arrays;
      this[side] = new Subwords(settings.texts[side], scores, charsmap);
    }
    this.doubts = new Doubts(settings.doubts);
  }

  // What `start` of view.js shows of a text.
  async translate(text, options, pause = () => {}) {
    const { ids, offsets } = this.source.read(text);
    const decoding = { ...this.decoding, ...options };
    const hypotheses = ids.length > 1 // else there is nothing to translate
      ? await searched(this.model, ids, decoding, this.target, pause)
      : [{ score: 0, logProb: 0, finished: true }];
    const columns = [...offsets.keys()];
    if (this.source.reverse) columns.reverse();
    const translations = hypotheses.map((x) => this.written(x, [...columns, offsets.length]));
    return {
      offsets: columns.map((column) => offsets[column]), translations,
      hasAlignment: true, truncated: !hypotheses[0].finished,
      ...this.doubts.of(text, offsets, translations[0]),
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
    const order = [...ids.keys()];
    if (this.target.reverse) order.splice(0, offsets.length, ...[...offsets.keys()].reverse());
    const weights = order.map((row) => columns.map((column) => rows[row][column]));
    return {
      text, score, logProb, finished, weights,
      offsets: order.slice(0, offsets.length).map((row) => offsets[row]),
    };
  }
}
