'use strict';
// A plugin's life on stdin and stdout: requests in, answers out, and reverse calls to the host.
//
// Everything that has a number here has it from the protocol: the wire's cap, when a result goes by
// file, how long a reverse call may take.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const crypto = require('node:crypto');
const json = require('./json.js');
const { LineSplitter, MAX_LINE, Oversized } = require('./framing.js');
const { NoHandshake, readOffer } = require('./handshake.js');
const { readHead } = require('./head.js');
const { Malformed, readMessage } = require('./wire.js');

const SPILL = 512 * 1024; // larger results go by file, where the host offered that
const REVERSE_SECONDS = 90;

/** An error answer: of ours to the host, or of the host's to a reverse call. */
class RpcError extends Error {
  constructor(code, message, data) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** A tool's own failure: its words become `error` beside `success: false`. */
class ToolError extends Error {}

/** What a tool gets beside its arguments. */
class Context {
  constructor(plugin, params) {
    const given = params.context ?? {};
    this.plugin = plugin;
    this.invokeId = given.invoke_id ?? params.invoke_id ?? '';
    this.credentials = given.credentials ?? {};
    this.controller = new AbortController();
  }

  /** Aborts when the host cancels the invoke. */
  get signal() {
    return this.controller.signal;
  }

  /** Tell the caller how it goes. */
  progress(data) {
    if (!this.plugin.isV2) return;
    const context = { invoke_id: this.invokeId };
    this.plugin.send({ method: 'executa/progress', params: { type: 'progress', data, context } });
  }

  /** Make a reverse call under this invoke; its result. Throws RpcError. */
  call(method, params) {
    this.signal.throwIfAborted();
    const context = { invoke_id: this.invokeId };
    return this.plugin.call(method, { ...params, context }, this.signal);
  }

  /** The text of a completion. */
  async sample(prompt, maxTokens = 256) {
    const messages = [{ role: 'user', content: { type: 'text', text: prompt } }];
    const result = await this.call('sampling/createMessage', { messages, maxTokens });
    return result?.content?.text ?? '';
  }
}

class Plugin {
  /** `tools` is a list of {name, description, parameters, run(arguments, context)}. */
  constructor(manifest, tools) {
    this.manifest = manifest;
    this.tools = new Map(tools.map((tool) => [tool.name, tool]));
    this.isV2 = false;
    this.spills = false;
    this.running = new Map(); // context by invoke id
    this.pending = new Map(); // reverse calls by id
    this.open = 0; // requests that are being answered
    this.ending = false;
    this.number = 0;
    this.methods = {
      initialize: (params) => this.initialize(params),
      describe: () => this.described(),
      invoke: (params) => this.invoke(params),
      health: () => ({ status: 'ready', message: '', details: {} }),
      shutdown: () => ({}),
    };
  }

  /** Serve until stdin ends, then answer what is open and exit with 0. */
  run() {
    // Frames only on stdout: whatever prints, prints to stderr.
    for (const name of ['log', 'info', 'debug']) console[name] = console.error;
    const splitter = new LineSplitter();
    process.stdin.on('data', (bytes) => splitter.feed(bytes).forEach((line) => this.line(line)));
    process.stdin.on('end', () => {
      const rest = splitter.end();
      if (rest !== null) this.line(rest);
      this.ending = true;
      this.endIfIdle();
    });
    process.stdout.on('error', () => process.exit(0)); // the host has gone
    process.on('SIGTERM', () => process.exit(0));
    process.on('SIGINT', () => process.exit(0));
  }

  endIfIdle() {
    if (this.ending && this.open === 0) process.stdout.write('', () => process.exit(0));
  }

  // --- What comes ---------------------------------------------------------------------------

  line(line) {
    if (line instanceof Oversized) {
      const head = readHead(line.head);
      const reason = `the line has ${line.size} bytes and the cap is ${MAX_LINE}`;
      this.malformed(new Malformed(-32600, reason, head.id, head.isRequest));
      return;
    }
    let message;
    try {
      message = readMessage(line);
    } catch (fault) {
      if (!(fault instanceof Malformed)) throw fault;
      this.malformed(fault);
      return;
    }
    if (message === null) return;
    if (!('method' in message)) this.response(message);
    else if ('id' in message) this.request(message);
    else this.notification(message);
  }

  malformed(fault) {
    const { answer, fails } = fault.outcome;
    console.error(`a line was skipped: ${fault.message}`);
    if (answer !== null) this.fail(answer.id, new RpcError(answer.code, fault.message));
    if (fails !== null) this.response({ id: fails, error: { code: fault.code, message: fault.message } });
  }

  async request({ id, method, params }) {
    this.open += 1;
    try {
      if (!Object.hasOwn(this.methods, method)) throw new RpcError(-32601, `there is no method ${method}`);
      this.answer(id, await this.methods[method](params ?? {}));
    } catch (fault) {
      this.fail(id, fault);
    } finally {
      this.open -= 1;
      this.endIfIdle();
    }
  }

  response(message) {
    const waiting = this.pending.get(message.id);
    if (waiting === undefined) return; // late, double, or never asked for
    this.pending.delete(message.id);
    const { error } = message;
    if (error === undefined) waiting.resolve(message.result);
    else waiting.reject(new RpcError(Number(error?.code ?? -32603), String(error?.message), error?.data));
  }

  notification({ method, params }) {
    if (method === 'executa/cancel') this.running.get(params?.invoke_id)?.controller.abort();
  }

  // --- Methods ------------------------------------------------------------------------------

  initialize(params) {
    let offered;
    try {
      offered = readOffer(params);
    } catch (fault) {
      if (!(fault instanceof NoHandshake)) throw fault;
      throw new RpcError(-32602, fault.message);
    }
    this.isV2 = params.protocolVersion !== '1.1';
    this.spills = offered.fileTransport === true;
    const wanted = ['sampling', 'storage', 'cancellation', 'progress'];
    const taken = wanted.filter((name) => name in offered).map((name) => [name, {}]);
    return {
      protocolVersion: params.protocolVersion,
      server_info: { name: this.manifest.name, version: this.manifest.version },
      capabilities: Object.fromEntries(taken),
    };
  }

  described() {
    const tools = [...this.tools.values()].map(({ run, ...told }) => told);
    return { ...this.manifest, tools };
  }

  async invoke(params) {
    const tool = this.tools.get(params.tool);
    if (tool === undefined) {
      throw new RpcError(-32601, `there is no tool ${params.tool}`, { available_tools: [...this.tools.keys()] });
    }
    const given = checked(tool, params.arguments ?? {});
    const context = new Context(this, params);
    this.running.set(context.invokeId, context);
    try {
      return { success: true, data: (await tool.run(given, context)) ?? null };
    } catch (fault) {
      if (context.signal.aborted) {
        throw new RpcError(-32000, 'the invoke was cancelled', { errorCode: 'INVOKE_CANCELLED' });
      }
      if (fault instanceof ToolError) return { success: false, error: fault.message };
      if (fault instanceof RpcError) return { success: false, error: `the host refused: ${fault.message}` };
      throw fault;
    } finally {
      this.running.delete(context.invokeId);
    }
  }

  // --- What goes out ------------------------------------------------------------------------

  answer(id, result) {
    const line = json.write({ jsonrpc: '2.0', id, result });
    if (this.spills && Buffer.byteLength(line) > SPILL) {
      this.send({ id, __file_transport: spilled(line) });
    } else {
      this.sendLine(line);
    }
  }

  fail(id, fault) {
    const known = fault instanceof RpcError;
    if (!known) console.error(fault); // the whole story stays here, and a word of it goes out
    const error = { code: known ? fault.code : -32603, message: known ? fault.message : 'the plugin failed' };
    this.send({ id, error: fault.data === undefined ? error : { ...error, data: fault.data } });
  }

  send(frame) {
    this.sendLine(json.write({ jsonrpc: '2.0', ...frame }));
  }

  sendLine(line) {
    if (Buffer.byteLength(line) > MAX_LINE) throw new RpcError(-32603, 'the frame is larger than a line may be');
    process.stdout.write(`${line}\n`);
  }

  /** Ask the host for something. Ids are strings, so that they meet none of the host's. */
  call(method, params, signal) {
    if (!this.isV2) throw new RpcError(-32008, `${method} needs protocol 2.0`);
    this.number += 1;
    const id = `r${this.number}`;
    return new Promise((resolve, reject) => {
      const settle = (how) => (value) => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', stop);
        how(value);
      };
      const stop = () => {
        this.pending.delete(id);
        settle(reject)(new RpcError(-32000, 'cancelled'));
      };
      const timer = setTimeout(stop, REVERSE_SECONDS * 1000);
      signal?.addEventListener('abort', stop);
      this.pending.set(id, { resolve: settle(resolve), reject: settle(reject) });
      this.send({ id, method, params });
    });
  }
}

const TYPES = {
  string: (value) => typeof value === 'string',
  boolean: (value) => typeof value === 'boolean',
  integer: (value) => typeof value === 'bigint' || Number.isInteger(Number(value)) && isNumber(value),
  number: (value) => isNumber(value) || typeof value === 'bigint',
  array: (value) => Array.isArray(value),
  object: (value) => value !== null && typeof value === 'object' && !Array.isArray(value) && !isNumber(value),
};

function isNumber(value) {
  return typeof value === 'number' || value instanceof json.Float;
}

/** The arguments that a tool declares, with its defaults. Throws RpcError for what does not fit. */
function checked(tool, given) {
  if (!TYPES.object(given)) throw new RpcError(-32602, 'arguments: expected an object');
  const found = {};
  for (const { name, type, required = true, default: usual } of tool.parameters) {
    const value = Object.hasOwn(given, name) ? given[name] : usual;
    if (value === undefined) {
      if (required) throw new RpcError(-32602, `arguments.${name}: missing`);
    } else if (TYPES[type](value)) {
      found[name] = value;
    } else {
      throw new RpcError(-32602, `arguments.${name}: expected ${type}`);
    }
  }
  return found;
}

/** A file with a whole response, in the directory that the host gave to this plugin alone. */
function spilled(line) {
  const name = path.join(os.tmpdir(), `executa-resp-${crypto.randomUUID()}.json`);
  fs.writeFileSync(name, line, { mode: 0o600, flag: 'wx' });
  return name;
}

module.exports = { Context, Plugin, RpcError, ToolError };
