// ts_client.mjs TARGET...: @modelcontextprotocol/client against a server, in three ways of negotiation. TARGET is a command
// line for stdio, or one URL, for which OUTLAST_TOKEN holds the token. Run it from a folder that has the package.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { drive, finish, token } from './checks.mjs';

const [command, ...args] = process.argv.slice(2);
const transport = () => command.startsWith('http')
    ? new StreamableHTTPClientTransport(new URL(command), { requestInit: { headers: token } })
    : new StdioClientTransport({ command, args, env: process.env, stderr: 'ignore' });

for (const mode of ['legacy', 'auto', { pin: '2026-07-28' }]) {
    console.log('# TypeScript client,', JSON.stringify(mode));
    const client = new Client({ name: 'ts', version: '0' }, { versionNegotiation: { mode }, capabilities: {} });
    await client.connect(transport());
    const tools = (await client.listTools()).tools.map(tool => tool.name);
    await drive(tools, (name, given, options) => client.callTool({ name, arguments: given }, options),
        !command.startsWith('http') || mode !== 'legacy');
    await client.close();
}
finish();
