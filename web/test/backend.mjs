// Serves the built page with the headers the program sends, and made-up facts, good and bad.
import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { why } from './fixture.mjs';

const TYPES = { 'index.html': 'text/html; charset=utf-8', 'page.js': 'text/javascript', 'page.css': 'text/css' };
export const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

export async function serve() {
  const state = { page: null, mode: 'good', why };
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, 'http://page');
    const send = (status, type, body) => response.writeHead(status, { 'Content-Type': type, 'Content-Security-Policy': POLICY }).end(body);
    const file = url.pathname === '/' ? 'index.html' : url.pathname.slice(1);
    if (TYPES[file]) return send(200, TYPES[file], await readFile(new URL(`../built/${file}`, import.meta.url)));
    if (state.mode === 'broken') return send(500, 'text/plain', 'the store is gone');
    if (state.mode === 'garbage') return send(200, 'application/json', '{"nodes": 7');
    if (state.mode === 'odd') return send(200, 'application/json', '{"nodes": 7}');
    if (state.mode === 'denied') return send(401, 'text/plain', 'who are you');
    if (state.mode === 'hung') return undefined;
    if (url.pathname === '/api/page') {
      if (Number(url.searchParams.get('after')) === state.page.revision) {
        await new Promise((done) => setTimeout(done, 300));
      }
      return send(200, 'application/json', JSON.stringify(state.page));
    }
    if (url.pathname === '/api/why') return send(200, 'application/json', JSON.stringify(state.why));
    return send(404, 'text/plain', 'no such thing');
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return { state, url: `http://127.0.0.1:${server.address().port}/`, close: () => (server.closeAllConnections(), server.close()) };
}
