'use strict';
// An adapter for the golden lines: `executa check golden -- node examples/node/parser.js`.
//
// One question a line on stdin, one answer a line on stdout. It reads what a plugin has to read.

const readline = require('node:readline');
const json = require('./lib/json.js');
const { LineSplitter, Oversized } = require('./lib/framing.js');
const { NoHandshake, readAnswer, readOffer } = require('./lib/handshake.js');
const { readHead } = require('./lib/head.js');
const { Malformed, readMessage } = require('./lib/wire.js');

function framing(bytes, question) {
  const limit = question.given?.max_line;
  const whole = split(bytes, limit, bytes.length || 1);
  if (json.write(whole) !== json.write(split(bytes, limit, 1))) {
    throw new Error('byte by byte something else comes of it');
  }
  return whole;
}

function split(bytes, limit, step) {
  const splitter = new LineSplitter(limit);
  const lines = [];
  for (let at = 0; at < bytes.length; at += step) lines.push(...splitter.feed(bytes.subarray(at, at + step)));
  return { lines: lines.map(shown), rest: shown(splitter.end()) };
}

function shown(line) {
  if (line === null) return null;
  if (!(line instanceof Oversized)) return line.toString();
  const head = readHead(line.head);
  return { oversized: line.size, id: head.id ?? null, is_request: head.isRequest };
}

const READERS = {
  framing,
  wire: (bytes, question, tolerate) => readMessage(bytes, tolerate) ?? {},
  handshake: (bytes, question, tolerate) => {
    const value = json.readBytes(bytes);
    return question.given.read === 'offer' ? { offered: readOffer(value) } : readAnswer(value, tolerate);
  },
};

function answer(question) {
  const read = READERS[question.chapter];
  if (read === undefined) return { skip: 'this is the start of a plugin, which does not read such lines' };
  const bytes = 'input_b64' in question ? Buffer.from(question.input_b64, 'base64') : Buffer.from(question.input);
  const met = new Set();
  const tolerate = (requirement) => {
    if (question.strict) throw new Error(requirement);
    met.add(requirement);
  };
  try {
    const decoded = read(bytes, question, tolerate);
    if (met.size === 0) return { reading: 'valid', decoded, diagnostic: null };
    return { reading: 'tolerated', decoded, diagnostic: [...met] };
  } catch (fault) {
    const refused = { reading: 'invalid', decoded: null };
    if (fault instanceof Malformed) return { ...refused, outcome: fault.outcome };
    if (question.strict || fault instanceof NoHandshake || fault instanceof json.JsonError) return refused;
    throw fault;
  }
}

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const question = json.read(line);
  process.stdout.write(`${json.write({ case: question.case, ...answer(question) })}\n`);
});
