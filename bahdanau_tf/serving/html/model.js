// The model, step by step: a bidirectional encoder, attention, gated units and a maxout readout.
// Matrices are float32, a row for each output; K hypotheses are the rows of one array.

// The settings and arrays that `bahdanau_tf.serving.page` packed.
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

// The weights of rows that are stored in a byte each, with a scale for each row.
function scaled(bytes, scales, columns) {
  const weights = new Float32Array(bytes.length);
  for (let i = 0; i < bytes.length; i++) weights[i] = bytes[i] * scales[Math.floor(i / columns)];
  return weights;
}

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const tanh = (x) => 1 - 2 / (1 + Math.exp(2 * x)); // faster than Math.tanh

// x Wᵀ + b of `count` rows x, for all rows of W or some.
function product(x, count, { weights, bias, inputs, outputs }, rows) {
  const size = rows?.length ?? outputs;
  const y = new Float32Array(count * size);
  for (let j = 0; j < size; j += 4) {
    // Four rows of W at once; the last of them may be the same.
    const [j0, j1, j2, j3] = [j, j + 1, j + 2, j + 3].map((i) => Math.min(i, size - 1));
    const [r0, r1, r2, r3] = [j0, j1, j2, j3].map((i) => (rows ? rows[i] : i));
    const [w0, w1, w2, w3] = [r0 * inputs, r1 * inputs, r2 * inputs, r3 * inputs];
    for (let k = 0; k < count; k++) {
      const start = k * inputs;
      let [y0, y1, y2, y3] = bias ? [bias[r0], bias[r1], bias[r2], bias[r3]] : [0, 0, 0, 0];
      for (let i = 0; i < inputs; i++) {
        const value = x[start + i];
        y0 += value * weights[w0 + i];
        y1 += value * weights[w1 + i];
        y2 += value * weights[w2 + i];
        y3 += value * weights[w3 + i];
      }
      y[k * size + j0] = y0;
      y[k * size + j1] = y1;
      y[k * size + j2] = y2;
      y[k * size + j3] = y3;
    }
  }
  return y;
}

// Rows of a table, and zeros for the id 0 if it stands for no word.
function lookUp({ weights, bias, inputs }, ids, hasZero) {
  const rows = new Float32Array(ids.length * inputs);
  ids.forEach((id, k) => {
    if (hasZero && !id) return;
    for (let i = 0; i < inputs; i++) {
      rows[k * inputs + i] = weights[id * inputs + i] + (bias ? bias[i] : 0);
    }
  });
  return rows;
}

// s + z (s~ - s), the gated unit; `projected` has the terms of its input, in rows of `width`.
function gated({ gates, candidate }, state, projected, width, count) {
  const n = candidate.outputs;
  const sums = product(state, count, gates);
  const visible = new Float32Array(count * n);
  for (let k = 0; k < count; k++) {
    for (let i = 0; i < n; i++) {
      const reset = sigmoid(sums[2 * k * n + n + i] + projected[k * width + n + i]);
      visible[k * n + i] = reset * state[k * n + i];
    }
  }
  const after = product(visible, count, candidate);
  for (let k = 0; k < count; k++) {
    for (let i = 0; i < n; i++) {
      const update = sigmoid(sums[2 * k * n + i] + projected[k * width + i]);
      const proposed = tanh(after[k * n + i] + projected[k * width + 2 * n + i]);
      after[k * n + i] = state[k * n + i] + update * (proposed - state[k * n + i]);
    }
  }
  return after;
}

// The state of each hypothesis is a row; a hypothesis continues one of `parents`.
export function selected(rows, parents, width) {
  const result = new Float32Array(parents.length * width);
  parents.forEach((k, i) => result.set(rows.subarray(k * width, (k + 1) * width), i * width));
  return result;
}

export class Model {
  constructor({ settings, arrays }) {
    this.order = settings.step_order;
    this.lexicon = settings.lexicon;
    this.lexiconWords = arrays.lexicon;
    const matrix = (name) => {
      const { rows, columns } = settings.matrices[name];
      let weights = arrays[name];
      const scales = arrays[`${name}.scales`]; // of rows, if a weight is a byte
      if (scales) weights = scaled(weights, scales, columns);
      return { weights, bias: arrays[`${name}.bias`], inputs: columns, outputs: rows };
    };
    const cell = (name) => ({
      input: settings.matrices[`${name}.input`] && matrix(`${name}.input`),
      gates: matrix(`${name}.gates`),
      candidate: matrix(`${name}.candidate`),
    });
    for (const name of ["source", "target", "bridge", "keys", "terms", "query", "state", "words"]) {
      this[name] = matrix(name);
    }
    this.directions = [cell("forward"), cell("backward")];
    this.cell = cell("cell");
    if (this.order === "conditional") this.contextCell = cell("context");
    if (settings.matrices.factor) this.factor = matrix("factor");
    this.energy = arrays.energy;
    this.units = this.cell.candidate.outputs;
    this.width = 3 * this.units; // of the terms of a cell, which those of the readout follow
  }

  // What the steps read of a sentence, and the state before the first.
  encode(ids) {
    const embedded = lookUp(this.source, ids);
    const n = this.directions[0].candidate.outputs;
    const annotations = new Float32Array(2 * n * ids.length);
    let state;
    this.directions.forEach((cell, side) => {
      const projected = product(embedded, ids.length, cell.input);
      state = new Float32Array(n);
      for (let step = 0; step < ids.length; step++) {
        const t = side ? ids.length - 1 - step : step;
        state = gated(cell, state, projected.subarray(3 * n * t), 3 * n, 1);
        annotations.set(state, 2 * n * t + n * side);
      }
    });
    return {
      length: ids.length,
      keys: product(annotations, ids.length, this.keys),
      terms: product(annotations, ids.length, this.terms),
      state: product(state, 1, this.bridge).map(tanh),
      term: new Float32Array(this.width), // of the context, in the original order
    };
  }

  // α of each hypothesis, and the terms of its context.
  attend(memory, states, count) {
    const queries = product(states, count, this.query);
    const units = this.query.outputs, width = this.terms.outputs;
    const terms = new Float32Array(count * width);
    const weights = Array.from({ length: count }, (_, k) => {
      const energies = new Float32Array(memory.length);
      for (let t = 0; t < memory.length; t++) {
        let sum = 0;
        for (let i = 0; i < units; i++) {
          sum += this.energy[i] * tanh(queries[k * units + i] + memory.keys[t * units + i]);
        }
        energies[t] = sum;
      }
      const largest = energies.reduce((a, b) => Math.max(a, b));
      const shares = energies.map((x) => Math.exp(x - largest));
      const total = shares.reduce((a, b) => a + b);
      shares.forEach((share, t) => {
        shares[t] = share / total;
        for (let i = 0; i < width; i++) {
          terms[k * width + i] += shares[t] * memory.terms[t * width + i];
        }
      });
      return shares;
    });
    return { weights, terms };
  }

  // Reads the last words of K hypotheses; returns features of the next words, states and α.
  step(memory, ids, { state, term }) {
    const count = ids.length, width = this.cell.input.outputs;
    const projected = product(lookUp(this.target, ids, true), count, this.cell.input);
    const added = (terms, from) => {
      const sum = projected.slice();
      for (let k = 0; k < count; k++) {
        for (let i = 0; i < this.width; i++) sum[k * width + i] += terms[k * from + i];
      }
      return sum;
    };
    const updated = (terms, from) => gated(this.cell, state, added(terms, from), width, count);
    let after, seen, attended;
    if (this.order === "conditional") {
      const middle = gated(this.cell, state, projected, width, count);
      attended = this.attend(memory, middle, count);
      seen = after = gated(this.contextCell, middle, attended.terms, width, count);
    } else if (this.order === "original") {
      seen = after = ids[0] ? updated(term, this.width) : state; // the first step reads no word
      attended = this.attend(memory, after, count);
      term = new Float32Array(count * this.width);
      for (let k = 0; k < count; k++) {
        term.set(attended.terms.subarray(k * width, k * width + this.width), k * this.width);
      }
    } else {
      attended = this.attend(memory, state, count);
      after = updated(attended.terms, width);
      seen = this.order === "appendix" ? state : after;
    }
    const features = this.read(seen, projected, attended.terms, count);
    return { features, state: { state: after, term }, weights: attended.weights };
  }

  // The maxout readout: the larger of two halves.
  read(states, projected, terms, count) {
    const hidden = product(states, count, this.state);
    const half = this.state.outputs / 2, width = this.cell.input.outputs;
    const features = new Float32Array(count * half);
    for (let k = 0; k < count; k++) {
      const value = (i) => {
        const place = k * width + this.width + i;
        return hidden[2 * k * half + i] + projected[place] + terms[place];
      };
      for (let i = 0; i < half; i++) {
        features[k * half + i] = Math.max(value(i), value(half + i));
      }
    }
    return this.factor ? product(features, count, this.factor) : features;
  }

  // Logits of all next words, or of those of a shortlist.
  logits(features, count, words) {
    return product(features, count, this.words, words);
  }

  // The first words of the vocabulary, and those that the lexicon has for a sentence.
  shortlist(ids) {
    const { first, width } = this.lexicon;
    const own = ids.flatMap((id) => [...this.lexiconWords.slice(id * width, (id + 1) * width)]);
    const more = [...new Set(own)].filter((word) => word >= first).sort((a, b) => a - b);
    return [...Array(first).keys(), ...more];
  }
}
