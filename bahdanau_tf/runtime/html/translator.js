// From a text to translations.

import { Capitals, asTyped } from "./capitals.js";
import { Doubts } from "./doubts.js";
import { Model } from "./model.js";
import { searched, stepsOf, treeOf } from "./search.js";
import { Subwords } from "./sentencepiece.js";

export class Translator {
  constructor({ settings, arrays, compiled }) {
    this.decoding = settings.decoding;
    this.longest = settings.longest;
    this.model = new Model({ settings, arrays, compiled });
    for (const side of ["source", "target"]) {
      const { [`${side}.scores`]: scores, [`${side}.charsmap`]: charsmap } = arrays;
      this[side] = new Subwords(settings.tokenizers[side], scores, charsmap);
    }
    this.doubts = new Doubts(settings.doubts);
    this.capitals = new Capitals(settings.doubts);
    this.chosen = new Map(); // of texts with several forms, the one that is read
  }

  // What `start` of view.js shows of a text, of whose forms the likeliest translation is taken. The
  // options are those of `searched`; rows of `attention` are in the order of the text. With `inside`
  // it also has steps and a tree.
  async translate(text, options, pause = () => {}) {
    let forms = this.capitals.readings(text), best;
    if (this.capitals.namesAlone(text) !== undefined) forms = [text];
    if (options?.inside || options?.attention) forms = [this.chosen.get(text) ?? forms[0]];
    for (const form of forms) {
      const reply = await this.read(form, options, pause);
      const { logProb, offsets, finished } = reply.translations[0];
      const likelihood = logProb / Math.max(offsets.length + finished, 1);
      const [before, after] = [form, reply.translations[0].text].map((x) => this.doubts.plainWords(x));
      const kept = this.doubts.keptWords(before, after).length;
      if (!best || (kept - best.kept || best.likelihood - likelihood) < 0) best = { form, reply, likelihood, kept };
    }
    if (forms.length > 1) this.chosen.set(text, best.form);
    return best.form === text ? best.reply : asTyped(best.reply, best.form, text);
  }

  async read(text, options, pause) {
    const { ids, offsets, isCut } = this.source.read(text, this.longest);
    const columns = [...offsets.keys()];
    if (this.source.reverse) columns.reverse();
    const places = [...columns, offsets.length], attention = {};
    for (const [step, row] of Object.entries(options?.attention ?? {})) {
      attention[step] = new Float32Array(places.length);
      places.forEach((place, i) => (attention[step][place] = row[i]));
    }
    const kept = this.doubts.keeps(text) ? text.trim() : this.capitals.namesAlone(text);
    const isKept = kept !== undefined, levels = options?.inside && !isKept && [];
    const decoding = { ...this.decoding, ...options, attention, levels };
    const hypotheses = ids.length > 1 && !isKept // else there is nothing to translate
      ? await searched(this.model, ids, decoding, this.target, pause)
      : [{ score: 0, logProb: 0, finished: true }];
    const translations = hypotheses.map((x) => this.written(x, places));
    if (isKept) translations[0].text = kept;
    const truncated = isCut || !hypotheses[0].finished;
    const inside = levels && {
      steps: await stepsOf(this, ids, translations[0].ids, { attention, places }, pause),
      tree: treeOf(decoding, hypotheses[0], this.target), beam: decoding.beam_size,
    };
    return {
      inside,
      offsets: columns.map((column) => offsets[column]), translations,
      hasAlignment: true, truncated,
      ...(isKept ? { doubts: [] } : this.doubts.of(text, offsets, { ...translations[0], truncated })),
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
      text, score, logProb, finished, weights, ids, order,
      offsets: order.slice(0, offsets.length).map((row) => offsets[row]),
    };
  }
}
