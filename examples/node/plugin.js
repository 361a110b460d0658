'use strict';
// A plugin in plain Node, without a dependency: a start for a port of the SDK.
//
//   executa dev --command "node examples/node/plugin.js"
//   executa check plugin -- node examples/node/plugin.js

const { Plugin, ToolError } = require('./lib/plugin.js');

const text = { name: 'text', type: 'string', description: 'The text.' };
const name = { name: 'name', type: 'string', description: 'Under which name.' };

const tools = [
  {
    name: 'count',
    description: 'Count the words, the lines and the characters of a text.',
    effect: 'read',
    parameters: [text],
    run({ text }) {
      const words = text.split(/\s+/u).filter(Boolean).length;
      return { words, lines: text.split('\n').length, characters: [...text].length };
    },
  },
  {
    name: 'repeat',
    description: 'Say a text again and again. What is long goes by file.',
    effect: 'read',
    parameters: [
      text,
      { name: 'times', type: 'integer', description: 'How often.', required: false, default: 2 },
    ],
    async run({ text, times }, context) {
      const most = 1000;
      if (times < 0 || times > most) throw new ToolError(`times: expected 0 to ${most}`);
      const said = [];
      for (let time = 0; time < times; time += 1) {
        context.signal.throwIfAborted();
        if (time % 100 === 0) context.progress({ time });
        said.push(text);
        await null; // other calls get their turn
      }
      return said.join('\n');
    },
  },
  {
    name: 'summarize',
    description: 'Summarize a text in one sentence, by the model of the user.',
    effect: 'read',
    parameters: [text],
    async run({ text }, context) {
      if (!text.trim()) throw new ToolError('there is nothing to summarize');
      return { summary: await context.sample(`Summarize in one sentence:\n\n${text}`) };
    },
  },
  {
    name: 'remember',
    description: "Keep a text in the user's storage.",
    effect: 'idempotent',
    parameters: [name, text],
    async run({ name, text }, context) {
      const key = `texts/${encodeURIComponent(name)}`;
      const { etag } = await context.call('storage/set', { key, value: text, scope: 'user' });
      return { key, etag };
    },
  },
  {
    name: 'recall',
    description: 'Give back a text that was kept.',
    effect: 'read',
    parameters: [name],
    async run({ name }, context) {
      const key = `texts/${encodeURIComponent(name)}`;
      const found = await context.call('storage/get', { key, scope: 'user' });
      if (!found.exists) throw new ToolError(`nothing is kept under ${name}`);
      return found.value;
    },
  },
];

const manifest = {
  name: 'words',
  version: '1.0.0',
  description: 'Counts, repeats, summarizes and keeps texts.',
  host_capabilities: ['llm.sample', 'aps.kv'],
};

new Plugin(manifest, tools).run();
