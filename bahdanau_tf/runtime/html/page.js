// The page that translates by itself: reads the model in it, and shows translations.

import { unpacked } from "./model.js";
import { fromBase64 } from "./products.js";
import { Translator } from "./translator.js";
import { start } from "./view.js";

const WORK = 12; // milliseconds of work before the page may draw and react

const contents = await unpacked(fromBase64(document.getElementById("model").textContent));
document.getElementById("model").remove();
const translator = new Translator(contents);

// A function to await between the steps of a search; it throws if the search is aborted.
function pauses(signal) {
  let last = performance.now();
  return async () => {
    if (performance.now() - last > WORK) {
      await new Promise((resolve) => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = resolve;
        port2.postMessage("");
      });
      last = performance.now();
    }
    signal.throwIfAborted();
  };
}

// Markdown as plain text: paragraphs are lines, and a table's rows items; marks are left out.
const plain = (markdown) => markdown
  .replace(/(?<=^[^\s#|*-].*)\n(?=[^\s#|*-])/gm, " ")
  .replace(/^\|[-:| ]*\|\n/gm, "") // an empty head, and the line below a head
  .replace(/^\|.*\|$/gm, (row) => `• ${row.slice(1, -1).trim().replace(/ *(?<!\\)\| */g, ": ")}`)
  .replace(/^#+ |`|\*\*|\\(?=\|)/gm, "");

const { searches, card, texts, gates, tokenizers, colon, doubts: { languages } } = contents.settings;
const letters = ["source", "target"].map((side) => tokenizers[side].kind === "char");
start((text, search, signal) => translator.translate(text, searches[search], pauses(signal)), {
  searches: Object.keys(searches), card: plain(card), texts, gates, languages, letters, colon,
  inside: (text, search, edit, signal) => {
    const beam_size = edit.beam_size ?? searches[search].beam_size;
    const n_best = Math.min(beam_size, searches.beam.n_best);
    return translator.translate(text, { ...edit, beam_size, n_best, inside: true }, pauses(signal));
  },
});
