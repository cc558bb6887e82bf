// ts1_client.mjs TARGET...: the older @modelcontextprotocol/sdk against a server. TARGET is a command line for stdio, or one
// URL, for which OUTLAST_TOKEN holds the token. Run it from a folder that has the package.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { drive, finish, token } from './checks.mjs';

const [command, ...args] = process.argv.slice(2);
const transport = command.startsWith('http')
    ? new StreamableHTTPClientTransport(new URL(command), { requestInit: { headers: token } })
    : new StdioClientTransport({ command, args, env: process.env, stderr: 'ignore' });

console.log('# TypeScript SDK 1');
const client = new Client({ name: 'ts1', version: '0' }, { capabilities: {} });
await client.connect(transport);
const tools = (await client.listTools()).tools.map(tool => tool.name);
await drive(tools, (name, given, options) => client.callTool({ name, arguments: given }, undefined, options),
    !command.startsWith('http'));
await client.close();
finish();
