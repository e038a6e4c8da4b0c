// Asks the model server for the translations that view.js shows.

import { start } from "./view.js";

const MODEL = "v1/models/translator";
const TIMEOUT = 60_000; // milliseconds
const LONGEST = 10_000; // characters of a sentence, at most 60,000 bytes in JSON: see nginx.conf
const PAUSE = 1000; // milliseconds, if there are too many requests
const ABSENT = -1e8; // a smaller score marks an entry without a translation

let signatures; // a promise of the names of the model's signatures

async function fetchJson(path, options = {}) {
  const reply = await fetch(path, options);
  if (reply.status === 429) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
    return fetchJson(path, options);
  }
  const body = await reply.text();
  let value;
  try {
    value = JSON.parse(body);
  } catch {
    throw new Error(`The server does not answer (${reply.status}).`);
  }
  if (!reply.ok) throw new Error(value.error ?? `Error ${reply.status}.`);
  return value;
}

async function signatureNames() {
  const { metadata } = await fetchJson(`${MODEL}/metadata`);
  return Object.keys(metadata.signature_def.signature_def);
}

// The rows of a signature's outputs for one text: `{name: value}`.
async function predict(signature, text, signal) {
  const { outputs } = await fetchJson(`${MODEL}:predict`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ signature_name: signature, inputs: { text: [text] } }),
    signal,
  });
  return Object.fromEntries(Object.entries(outputs).map(([name, rows]) => [name, rows[0]]));
}

async function replyTo(text, signal) {
  signatures ??= signatureNames();
  const begin = text.slice(0, LONGEST).toWellFormed();
  const hasAlignment = (await signatures).includes("align");
  const [best, aligned] = await Promise.all([
    predict("n_best", begin, signal),
    hasAlignment ? predict("align", begin, signal) : undefined,
  ]);
  const translations = best.translations
    // Exports of earlier versions lack the output `finished`.
    .map((text, i) => ({ text, score: best.scores[i], finished: best.finished?.[i] !== false }))
    .filter(({ score }) => score > ABSENT);
  translations[0] ??= { text: best.translations[0], score: best.scores[0], finished: true };
  if (aligned?.translation === translations[0].text) {
    translations[0].finished = aligned.finished ?? !aligned.truncated;
    translations[0].offsets = aligned.target_offsets;
    translations[0].weights = aligned.weights
      .slice(0, aligned.target_length)
      .map((row) => row.slice(0, aligned.source_length));
  }
  return {
    offsets: aligned?.source_offsets,
    translations,
    hasAlignment,
    truncated: begin !== text || best.truncated || Boolean(aligned?.truncated),
  };
}

start(async (text, search, signal) => {
  try {
    return await replyTo(text, AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT)]));
  } catch (error) {
    signatures = undefined;
    if (error.name === "TimeoutError") throw new Error("No answer within a minute.");
    if (error instanceof TypeError) throw new Error("The server cannot be reached.");
    throw error;
  }
});
