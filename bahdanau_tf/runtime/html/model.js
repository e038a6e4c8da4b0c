// The model, step by step: a bidirectional encoder, attention, gated units and a maxout readout.
// Values of K hypotheses, or of T positions, are arrays of K or T vectors.

// The settings and arrays that `bahdanau_tf.runtime.page` packed.
export async function unpacked(base64) {
  const packed = atob(base64);
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const start = 4 + new DataView(buffer).getUint32(0, true);
  const settings = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, start - 4)));
  const kinds = { int8: Int8Array, uint8: Uint8Array, int32: Int32Array, float32: Float32Array };
  const arrays = {};
  for (const [name, { dtype, place, size }] of Object.entries(settings.arrays)) {
    arrays[name] = new kinds[dtype](buffer.slice(start + place, start + place + size));
  }
  return { settings, arrays };
}

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const tanh = (x) => 1 - 2 / (1 + Math.exp(2 * x)); // faster than Math.tanh

// W x + b for vectors x, with all rows of W or some; four rows of W at once.
function product(vectors, { weights, bias, inputs, outputs }, rows) {
  const size = rows?.length ?? outputs;
  const products = vectors.map(() => new Float32Array(size));
  for (let j = 0; j < size; j += 4) {
    const row = (i) => (rows ? rows[Math.min(j + i, size - 1)] : Math.min(j + i, size - 1));
    const r0 = row(0), r1 = row(1), r2 = row(2), r3 = row(3); // at the end some are the same
    const w0 = r0 * inputs, w1 = r1 * inputs, w2 = r2 * inputs, w3 = r3 * inputs;
    for (let k = 0; k < vectors.length; k++) {
      const x = vectors[k], y = products[k];
      let y0 = bias[r0], y1 = bias[r1], y2 = bias[r2], y3 = bias[r3];
      for (let i = 0; i < inputs; i++) {
        const value = x[i];
        y0 += value * weights[w0 + i];
        y1 += value * weights[w1 + i];
        y2 += value * weights[w2 + i];
        y3 += value * weights[w3 + i];
      }
      y[j] = y0;
      y[j + 1] = y1; // beyond the end nothing is written
      y[j + 2] = y2;
      y[j + 3] = y3;
    }
  }
  return products;
}

const lookUp = ({ weights, bias, inputs }, id) =>
  weights.slice(id * inputs, (id + 1) * inputs).map((x, i) => x + bias[i]);

const added = (vectors, others) => vectors.map((x, k) => x.map((value, i) => value + others[k][i]));

// σ(W s + x) of the gates of a cell, their means over its units.
function meansOf({ gates, candidate: { outputs } }, state, terms) {
  const opened = product([state], gates)[0].map((x, i) => sigmoid(x + terms[i]));
  const mean = (values) => values.reduce((sum, x) => sum + x, 0) / outputs;
  return { update: mean(opened.slice(0, outputs)), reset: mean(opened.slice(outputs)) };
}

// s + z (s~ - s), the gated unit; `terms` are those of its input.
function gated({ gates, candidate }, states, terms) {
  const n = candidate.outputs;
  const sums = product(states, gates);
  const visible = states.map((state, k) =>
    state.map((x, i) => x * sigmoid(sums[k][n + i] + terms[k][n + i])));
  const proposed = product(visible, candidate);
  return states.map((state, k) =>
    state.map((x, i) => {
      const update = sigmoid(sums[k][i] + terms[k][i]);
      return x + update * (tanh(proposed[k][i] + terms[k][2 * n + i]) - x);
    }));
}

export class Model {
  constructor({ settings, arrays }) {
    Object.assign(this, { order: settings.step_order, lexicon: settings.lexicon, arrays });
    for (const [name, [outputs, inputs]] of Object.entries(settings.matrices)) {
      const bytes = arrays[name], scales = arrays[`${name}.scales`];
      let weights = bytes;
      if (scales) { // of rows, whose weights are bytes
        weights = new Float32Array(bytes.length);
        for (let i = 0; i < bytes.length; i++) weights[i] = bytes[i] * scales[(i / inputs) | 0];
      }
      const [owner, part] = name.split(".");
      const matrix = { weights, bias: arrays[`${name}.bias`], inputs, outputs };
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
    const codes = this.arrays.copies && ids.map((id) => this.arrays.copies[id]);
    return { keys, terms, state, term: new Float32Array(this.terms.outputs), codes };
  }

  // α of each hypothesis, `row` if there is one, and the terms of its context.
  attend({ keys, terms }, states, row) {
    const alphas = product(states, this.query).map((query) => {
      if (row) return row;
      const energies = keys.map((key) =>
        this.arrays.energy.reduce((sum, value, i) => sum + value * tanh(query[i] + key[i]), 0));
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
    const gate = (column) => Math.exp(
      [...features, ...marks].reduce((sum, x, i) => sum + x * kernel[2 * i + column], bias[column]));
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
      if (hints) {
        matches[k].marks.forEach((mark, m) => {
          if (mark) for (let i = 0; i < 2 * half; i++) hidden[i] += hints[2 * half * m + i];
        });
      }
      const value = (i) => hidden[i] + terms[k][start + i];
      return hidden.subarray(0, half).map((_, i) => Math.max(value(i), value(half + i)));
    });
    return this.factor ? product(features, this.factor) : features;
  }

  // Logits of all next words, or of those of a shortlist; those of copied words have odds.
  logits(features, words, odds) {
    const logits = product(features, this.words, words);
    odds?.forEach((ofWords, k) => {
      const row = logits[k], largest = row.reduce((a, b) => Math.max(a, b));
      const total = largest + Math.log(row.reduce((sum, x) => sum + Math.exp(x - largest), 0));
      for (const [word, value] of ofWords) {
        const place = words ? words.indexOf(word) : word, copied = total + Math.log(value);
        if (place < 0) continue;
        const most = Math.max(row[place], copied);
        row[place] = most + Math.log1p(Math.exp(-Math.abs(row[place] - copied)));
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
