// The model, step by step: a bidirectional encoder, attention, gated units and a maxout readout.
// Values of K hypotheses, or of T positions, are arrays of K or T vectors.

import { attended, placed, product } from "./products.js";

// The settings and arrays that `bahdanau_tf.runtime.page` packed.
export async function unpacked(packed) {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const header = 4 + new DataView(bytes.buffer).getUint32(0, true);
  const settings = JSON.parse(new TextDecoder().decode(bytes.subarray(4, header)));
  const { buffer, start, compiled } = await placed(bytes.subarray(header), settings.matrices);
  const kinds = { int8: Int8Array, uint8: Uint8Array, int32: Int32Array, float32: Float32Array };
  const arrays = {};
  for (const [name, { dtype, place, size }] of Object.entries(settings.arrays)) {
    const kind = kinds[dtype];
    arrays[name] = new kind(buffer, start + place, size / kind.BYTES_PER_ELEMENT);
  }
  return { settings, arrays, compiled };
}

const MARK = 1 << 24; // see `bahdanau_tf.layers.Copying`

// The words of a source as those of the target, negative where they continue one.
function codesOf(codes) {
  const isInner = (code) => code < 0 && code > -MARK;
  const isMark = (code) => code < -MARK;
  return codes.map((code, j) => {
    const next = codes.slice(j + 1).find((other) => !isMark(other));
    const continues = code < 0 && (isInner(code) || isInner(next));
    return (Math.abs(code) % MARK) * (continues ? -1 : 1);
  });
}

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const tanh = (x) => 1 - 2 / (1 + Math.exp(2 * x)); // faster than Math.tanh

// As Float32Array.from, but several times as fast.
function vector(size, valueOf) {
  const x = new Float32Array(size);
  for (let i = 0; i < size; i++) x[i] = valueOf(i);
  return x;
}

function lookUp({ weights, scales, bias, inputs }, id) {
  const start = id * inputs, scale = scales?.[id] ?? 1;
  return vector(inputs, (i) => weights[start + i] * scale + bias[i]);
}

const added = (vectors, others) =>
  vectors.map((x, k) => vector(x.length, (i) => x[i] + others[k][i]));

// σ(W s + x) of the gates of a cell, their means over its units.
function meansOf({ gates, candidate: { outputs } }, state, terms) {
  const opened = product([state], gates)[0].map((x, i) => sigmoid(x + terms[i]));
  const mean = (values) => values.reduce((sum, x) => sum + x, 0) / outputs;
  return { update: mean(opened.slice(0, outputs)), reset: mean(opened.slice(outputs)) };
}

// s + z (s~ - s), the gated unit; `terms` are those of its input.
function gated({ gates, candidate }, states, terms) {
  const n = candidate.outputs, sums = product(states, gates);
  const visible = states.map((state, k) => {
    const sum = sums[k], term = terms[k];
    return vector(n, (i) => state[i] * sigmoid(sum[n + i] + term[n + i]));
  });
  const proposed = product(visible, candidate);
  return states.map((state, k) => {
    const sum = sums[k], term = terms[k], next = proposed[k];
    return vector(n, (i) =>
      state[i] + sigmoid(sum[i] + term[i]) * (tanh(next[i] + term[2 * n + i]) - state[i]));
  });
}

export class Model {
  constructor({ settings, arrays, compiled }) {
    Object.assign(this, { order: settings.step_order, lexicon: settings.lexicon, arrays });
    for (const [name, [outputs, inputs]] of Object.entries(settings.matrices)) {
      const [weights, scales, bias] = ["", ".scales", ".bias"].map((part) => arrays[name + part]);
      const matrix = { weights, scales, bias, inputs, outputs, compiled };
      const [owner, part] = name.split(".");
      this[owner] = part ? { ...this[owner], [part]: matrix } : matrix;
    }
  }

  // What the steps read of a sentence, and the state before the first. `pause` is awaited often, so
  // that a page reacts while a long one is read.
  async encode(ids, pause) {
    const inParts = async (items, size, step) => {
      const all = [];
      for (let i = 0; i < items.length; i += size) {
        await pause();
        all.push(...step(items.slice(i, i + size)));
      }
      return all;
    };
    const projected = (vectors, matrix) => inParts(vectors, 32, (some) => product(some, matrix));
    const embedded = ids.map((id) => lookUp(this.source, id));
    const read = async (cell, isBackward) => {
      const terms = await projected(embedded, cell.input);
      if (isBackward) terms.reverse();
      let states = [new Float32Array(cell.candidate.outputs)];
      const all = await inParts(terms, 1, (term) => (states = gated(cell, states, term)));
      return isBackward ? all.reverse() : all;
    };
    const forward = await read(this.forward, false), backward = await read(this.backward, true);
    const annotations = forward.map((x, t) => Float32Array.from([...x, ...backward[t]]));
    const state = product(backward.slice(0, 1), this.bridge)[0].map(tanh);
    const keys = await projected(annotations, this.keys);
    const terms = await projected(annotations, this.terms);
    const codes = this.arrays.copies && codesOf(ids.map((id) => this.arrays.copies[id]));
    return { keys, terms, state, term: new Float32Array(this.terms.outputs), codes };
  }

  // α of each hypothesis, `row` if there is one, and the terms of its context.
  attend({ keys, terms }, states, row) {
    const { energy } = this.arrays, queries = product(states, this.query);
    const both = !row && attended(queries, { keys, terms }, energy, this.query.compiled);
    if (both) return both;
    const alphas = queries.map((query) => {
      if (row) return row;
      const energies = keys.map((key) => {
        let sum = 0;
        for (let i = 0; i < energy.length; i++) sum += energy[i] * tanh(query[i] + key[i]);
        return sum;
      });
      const largest = energies.reduce((a, b) => Math.max(a, b));
      const shares = energies.map((x) => Math.exp(x - largest));
      const total = shares.reduce((a, b) => a + b);
      return Float32Array.from(shares, (x) => x / total);
    });
    const contexts = alphas.map((alpha) => {
      const sum = new Float32Array(this.terms.outputs);
      terms.forEach((term, t) => {
        for (let i = 0; i < sum.length; i++) sum[i] += alpha[t] * term[i];
      });
      return sum;
    });
    return [alphas, contexts];
  }

  // What follows the last words of a hypothesis where they occur in the source, and six marks of
  // where they do; see `bahdanau_tf.layers.Copying`.
  matched(codes, { id, parent, weights }) {
    const last = [id];
    for (let each = parent; each && last.length < 5; each = each.parent) last.push(each.id);
    const marks = new Float32Array(6), follower = new Float32Array(codes.length);
    for (let j = 0; j < codes.length; j++) {
      const continues = codes[j + 1] < 0;
      let k = 0;
      while (k < 5 && last[k] && Math.abs(codes[j - k]) === last[k]) k++;
      for (let n = 0; n < Math.min(k, 3); n++) marks[2 * n + !continues] = 1;
      if (k && continues) follower[j + 1] = (6 ** k - 1) * (weights[j] + 0.05);
    }
    const total = follower.reduce((a, b) => a + b) || 1;
    return { marks, follower: follower.map((x) => x / total) };
  }

  // The odds of each word of the source as the next one, by word.
  odds(codes, features, { marks, follower }, alpha) {
    const { "copying.kernel": kernel, "copying.bias": bias } = this.arrays;
    const inputs = [...features, ...marks];
    const gate = (column) =>
      Math.exp(inputs.reduce((sum, x, i) => sum + x * kernel[2 * i + column], bias[column]));
    const pointed = gate(0), followed = gate(1), odds = new Map();
    codes.forEach((code, j) => {
      const word = Math.abs(code), more = pointed * alpha[j] + followed * follower[j];
      if (word && more) odds.set(word, (odds.get(word) ?? 0) + more);
    });
    return odds;
  }

  // Reads the last word `id` of each hypothesis with its `state` and, in the original order, the
  // `term` of its context; returns features of the next words, states, terms, α and, if words are
  // copied, odds. `row` is used as α; `gates` gets the means of the first hypothesis'
  // gates.
  step(memory, hypotheses, row, gates) {
    const updated = (cell, states, terms, name = "") => {
      const means = gates ? Object.entries(meansOf(cell, states[0], terms[0])) : [];
      for (const [gate, mean] of means) gates[name + gate] = mean;
      return gated(cell, states, terms);
    };
    const states = hypotheses.map(({ state }) => state);
    const isFirst = !hypotheses[0].id; // no word is read
    const projected = product(
      hypotheses.map(({ id }) =>
        isFirst ? new Float32Array(this.target.inputs) : lookUp(this.target, id)),
      this.cell.input);
    let after, seen, alphas, contexts;
    if (this.order === "conditional") {
      const middle = updated(this.cell, states, projected, "word ");
      [alphas, contexts] = this.attend(memory, middle, row);
      seen = after = updated(this.context, middle, contexts, "context ");
    } else if (this.order === "original") {
      const terms = added(projected, hypotheses.map(({ term }) => term));
      seen = after = isFirst ? states : updated(this.cell, states, terms);
      [alphas, contexts] = this.attend(memory, after, row);
    } else {
      [alphas, contexts] = this.attend(memory, states, row);
      after = updated(this.cell, states, added(projected, contexts));
      seen = this.order === "appendix" ? states : after;
    }
    const { codes } = memory;
    const matches = codes && hypotheses.map((hypothesis) => this.matched(codes, hypothesis));
    const features = this.read(seen, added(projected, contexts), matches);
    const odds = matches?.map((match, k) => this.odds(codes, features[k], match, alphas[k]));
    return { features, after, contexts, alphas, odds };
  }

  // The maxout readout: the larger values of two halves, whose terms follow those of the cell.
  read(states, terms, matches) {
    const half = this.state.outputs / 2, start = this.cell.input.outputs - 2 * half;
    const { hints } = this.arrays;
    const features = product(states, this.state).map((hidden, k) => {
      matches?.[k].marks.forEach((mark, m) => {
        if (mark) for (let i = 0; i < 2 * half; i++) hidden[i] += hints[2 * half * m + i];
      });
      const term = terms[k], value = (i) => hidden[i] + term[start + i];
      return vector(half, (i) => Math.max(value(i), value(half + i)));
    });
    return this.factor ? product(features, this.factor) : features;
  }

  // Logits of all next words, or of those of a shortlist, that are log-probabilities; those of
  // copied words have odds.
  logits(features, words, odds) {
    const copied = features.map((_, k) => [...(odds?.[k] ?? [])]
      .map(([word, value]) => [words ? words.indexOf(word) : word, value])
      .filter(([place]) => place >= 0));
    const wholes = copied.map((some) => some.reduce((sum, [, value]) => sum + value, 1));
    const logits = product(features, this.words, words, wholes);
    logits.forEach((row, k) => {
      for (const [place, value] of copied[k]) {
        row[place] = Math.log(Math.exp(row[place]) + value / wholes[k]);
      }
    });
    return logits;
  }

  // The first words of the vocabulary, those that the lexicon has for a sentence, and `others`.
  shortlist(ids, others = []) {
    const { first, width } = this.lexicon;
    const own = ids.flatMap((id) => [...this.arrays.lexicon.slice(id * width, (id + 1) * width)]);
    const more = [...new Set([...own, ...others])].filter((word) => word >= first);
    return [...Array(first).keys(), ...more.sort((a, b) => a - b)];
  }
}
