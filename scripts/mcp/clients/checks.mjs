// What both majors of the TypeScript SDK are made to do: run, wait, read, stop, and a call that is given up.
let failed = 0;

export const finish = () => process.exit(failed);
export const token = { Authorization: `Bearer ${process.env.OUTLAST_TOKEN ?? ''}` };

const check = (holds, what, seen) => {
    if (!holds) failed = 1;
    console.log((holds ? 'PASS ' : 'FAIL ') + what + (holds ? '' : ': ' + JSON.stringify(seen)?.slice(0, 400)));
};

// `call(name, arguments, options)` is one call of a tool; the majors differ in where its options stand.
// `heard`: whether the server hears that a call is given up. An older client over HTTP has no session in which it could say
// so: its command goes to the background when its grace is over.
export async function drive(tools, call, heard) {
    const text = result => result.content.map(part => part.text ?? '').join('\n');
    const idIn = result => text(result).match(/wrk_[0-9a-f]{32}/)?.[0] ?? '';
    check(['run', 'wait', 'read', 'list', 'stop', 'send'].every(name => tools.includes(name)), 'tools', tools);
    const notes = [];
    let result = await call('run', { command: 'echo a; sleep 6; echo b; exit 3' }, { onprogress: note => notes.push(note) });
    const view = result._meta?.['outlast/command'];
    check(text(result).includes('b') && !result.isError && view?.exit_code === 3 && notes.length, `run, ${notes.length} notes`, result);
    result = await call('run', { command: 'echo early; sleep 1; echo late', background: true });
    const id = idIn(result);
    result = await call('wait', { id });
    check(text(result).includes('late'), 'background start, wait', result);
    result = await call('read', { id, head: 1 });
    check(text(result).includes('early') && !text(result).includes('late'), 'read', result);
    const given = new AbortController();
    const label = `cut ${process.pid}-${notes.length}-${Date.now()}`;
    const cut = call('run', { command: `echo ${label}; exec sleep 20`, label }, { signal: given.signal, onprogress: () => given.abort('given up') });
    const error = await cut.catch(thrown => thrown);
    check(error instanceof Error || !error?.content, 'a call that is given up rejects', error);
    if (!heard) return;
    // Over HTTP nobody tells a client when the server has noticed that it has gone.
    let row;
    for (const until = Date.now() + 10_000; !row && Date.now() < until;) {
        row = text(await call('list', {})).split('\n').find(one => one.includes(label));
    }
    check(Boolean(row), 'its command is listed', row);
    result = await call('stop', { id: row?.match(/wrk_[0-9a-f]{32}/)?.[0] ?? '' });
    check(text(result).includes('stopped') && !result.isError, 'stop', result);
    result = await call('read', { id: 'wrk_' + '0'.repeat(32) });
    check(result.isError, 'an unknown id is an error', result);
}
