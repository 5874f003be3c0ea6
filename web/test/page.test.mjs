// The page in a real Chromium: every screen with data, empty, old and with a broken program behind.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { readFile, mkdir, stat } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { chromium } from 'playwright-core';
import { serve } from './backend.mjs';
import { makePage } from './fixture.mjs';

const AXE = await readFile(new URL('../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
const SHOTS = process.env.BERTH_SCREENSHOTS; // a folder: pictures of each screen go there
let backend, browser;

before(async () => {
  backend = await serve();
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
  });
});
after(async () => {
  await browser?.close();
  backend?.close();
});

async function open(hash = '', { dark = false, page = makePage(), mode = 'good', width = 1360, wait = 'main h1, main h2' } = {}) {
  backend.state.page = page;
  backend.state.mode = mode;
  const context = await browser.newContext({ viewport: { width, height: 860 }, colorScheme: dark ? 'dark' : 'light', bypassCSP: false });
  const tab = await context.newPage();
  tab.faults = [];
  tab.on('pageerror', (error) => tab.faults.push(String(error)));
  tab.on('console', (message) => message.type() === 'error' && !/Failed to load resource/.test(message.text()) && tab.faults.push(message.text()));
  tab.on('request', (request) => {
    if (!request.url().startsWith(backend.url) && !request.url().startsWith('data:')) tab.faults.push(`asked for ${request.url()}`);
  });
  await tab.goto(backend.url + hash);
  if (wait) await tab.waitForSelector(wait);
  return tab;
}
async function shot(tab, name) {
  if (!SHOTS) return;
  await mkdir(SHOTS, { recursive: true });
  await tab.screenshot({ path: `${SHOTS}/${name}.png` });
}
async function accessible(tab) {
  // The script of the test goes past the policy, which the page itself keeps.
  const found = await tab.evaluate(`${AXE}; axe.run(document, { resultTypes: ['violations'] })`);
  const serious = found.violations.filter((v) => v.impact === 'serious' || v.impact === 'critical');
  assert.deepEqual(serious.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(' | ').slice(0, 300)}`), []);
}
async function done(tab) {
  assert.deepEqual(tab.faults, []);
  await tab.context().close();
}

const SCREENS = { fleet: '#/fleet', jobs: '#/jobs', job: '#/jobs/Job/team-1/resnet', running: '#/jobs/Job/team-0/train-0', usage: '#/usage', node: '#/fleet?node=gpu-node-0001&color=busy', table: '#/fleet?as=table' };

for (const [name, hash] of Object.entries(SCREENS)) {
  for (const dark of [false, true]) {
    test(`${name}, ${dark ? 'dark' : 'light'}: data, no serious fault of access`, async () => {
      const tab = await open(hash, { dark });
      await tab.waitForTimeout(200);
      await accessible(tab);
      await shot(tab, `${name}${dark ? '-dark' : ''}`);
      await done(tab);
    });
  }
  test(`${name}: on a telephone nothing is wider than the screen, and words stay words`, async () => {
    const tab = await open(hash, { width: 390 });
    await tab.waitForTimeout(200);
    assert.equal(await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0);
    const thin = await tab.evaluate(() =>
      [...document.querySelectorAll('td:not(.num)')].filter((cell) => cell.innerText.length > 8 && cell.clientWidth < 32).map((cell) => cell.innerText));
    assert.deepEqual(thin, []);
    await accessible(tab);
    await done(tab);
  });
  test(`${name}: an empty cluster`, async () => {
    const tab = await open(hash, { page: makePage({ nodes: 0 }) });
    assert.match(await tab.textContent('header'), /No GPUs/);
    await accessible(tab);
    await shot(tab, `${name}-empty`);
    await done(tab);
  });
}

test('waits of queues, the last day, and who measures', async () => {
  const tab = await open('#/fleet');
  const queues = await tab.textContent('section[aria-labelledby=queues]');
  assert.match(queues, /Wait p50/);
  assert.match(queues, /2 min\s*2 h of 41/);
  assert.match(queues, /nobody yet/);
  const health = await tab.textContent('section[aria-labelledby=health]');
  assert.match(health, /20 min ago: gpu-node-0001 GPU 6 left service: XidGpuFallen/);
  assert.match(health, /14 h ago: gpu-node-0000 GPU 2 came back/);
  assert.match(await tab.textContent('section.main'), /Utilisation from 3 nodes, at most 12 s old; 1 node did not answer/);
  const charts = tab.locator('section[aria-labelledby=trend] svg');
  assert.equal(await charts.count(), 2);
  assert.match(await charts.nth(0).getAttribute('aria-label'), /GPUs held: [\d.]+ on average/);
  // The hole in the day is a hole in the line, and nothing is drawn outside of the picture.
  const line = await tab.getAttribute('section[aria-labelledby=trend] path.busy', 'd');
  assert.equal(line.match(/M/g).length, 3);
  assert.doesNotMatch(line, /NaN|-/);
  await done(tab);
});

test('a program that measures nothing says so', async () => {
  const page = makePage();
  page.telemetry = { nodes: 0, silent: 4, oldest: null };
  page.trend = page.trend.map((s) => ({ ...s, busy: -1 }));
  const tab = await open('#/fleet', { page });
  assert.match(await tab.textContent('section.main'), /Nobody tells how busy GPUs are: 4 nodes did not answer/);
  assert.match(await tab.textContent('section[aria-labelledby=trend]'), /Nobody measured/);
  await accessible(tab);
  await done(tab);
});

test('the answer comes first, and the states sum up', async () => {
  const tab = await open('#/fleet');
  assert.match(await tab.textContent('.answer'), /Yes: 5 of 32 GPUs free; the largest that fits now: \d+ x 2/);
  assert.match(await tab.textContent('.sum'), /used 26.*free 5.*unhealthy 1.*reserved 0.*unknown 0.*= 32/);
  await done(tab);
});

test('a name that is HTML is shown, not run', async () => {
  const tab = await open('#/fleet');
  assert.match(await tab.textContent('main'), /<script>alert\(1\)<\/script>: Fragmented/);
  assert.equal(await tab.locator('main script').count(), 0);
  await done(tab);
});

test('the why panel has the sections of berth why', async () => {
  const tab = await open('#/jobs/Job/team-1/resnet');
  await tab.waitForSelector('.verdict');
  const text = await tab.textContent('main');
  for (const part of ['Fragmented', '8 to be had', 'ask for 2 pods x 2 GPUs', 'starts now', 'berth why job team-1/resnet', 'nobody declares', 'h100-pool: 4 of 4 nodes, at its limit of 4 nodes', 'NotTriggerScaleUp', 'preempt team-0/train-0-0: no, same priority']) {
    assert.ok(text.includes(part), part);
  }
  await done(tab);
});

test('ranks, idle GPUs and interruptions of a job that runs', async () => {
  const tab = await open('#/jobs/Job/team-0/train-0');
  const text = await tab.textContent('main');
  assert.match(text, /team-0\/train-0-4/);
  assert.match(text, /made room for team-1\/urgent/);
  assert.equal(await tab.locator('.meter').count(), 6);
  await done(tab);
});

test('updates come without a reload', async () => {
  const tab = await open('#/fleet');
  const next = makePage({ revision: 2 });
  next.nodes[0].states = 'UUUUUUUU';
  next.gpus.used += 2;
  next.gpus.free -= 2;
  backend.state.page = next;
  await tab.waitForSelector('.sum:has-text("used 28")');
  await done(tab);
});

test('old facts say how old they are', async () => {
  const tab = await open('#/fleet');
  await tab.clock.install();
  backend.state.mode = 'hung';
  await tab.clock.runFor(20_000);
  await tab.waitForSelector('.banner.bad');
  assert.match(await tab.textContent('.banner.bad'), /These facts are \d+ s old/);
  await accessible(tab);
  await shot(tab, 'stale');
  await tab.context().close();
});

for (const [mode, words] of [
  ['broken', /the store is gone/],
  ['garbage', /not JSON/],
  ['odd', /something else than a page/],
]) {
  test(`a ${mode} program: the page says so and goes on`, async () => {
    const tab = await open('#/fleet', { mode, wait: '.banner.bad' });
    assert.match(await tab.textContent('.banner.bad'), words);
    await accessible(tab);
    await shot(tab, mode);
    backend.state.mode = 'good';
    await tab.waitForSelector('main h2', { timeout: 15_000 });
    await done(tab);
  });
}

test('a program that wants a token gets one', async () => {
  const tab = await open('#/fleet', { mode: 'denied', wait: 'input[type=password]' });
  await accessible(tab);
  await shot(tab, 'sign-in');
  backend.state.mode = 'good';
  await tab.fill('input[type=password]', 'abc');
  await tab.click('button');
  await tab.waitForSelector('main h2#map');
  await done(tab);
});

test('search by keyboard', async () => {
  const tab = await open('#/fleet');
  await tab.keyboard.press('/');
  await tab.keyboard.type('resn');
  await tab.waitForSelector('.hits a');
  await tab.keyboard.press('Enter');
  await tab.waitForURL('**/#/jobs/Job/team-1/resnet');
  await done(tab);
});

test('a deep link to a node, and back', async () => {
  const tab = await open('#/fleet?node=gpu-node-0001');
  assert.match(await tab.textContent('.panel'), /gpu-node-0001/);
  await tab.click('.panel >> text=close');
  await tab.waitForSelector('.panel', { state: 'detached' });
  await tab.goBack();
  await tab.waitForSelector('.panel');
  await done(tab);
});

test('a click on the map opens the node, hovering names the pod', async () => {
  const tab = await open('#/fleet');
  const box = await tab.locator('canvas').boundingBox();
  const [x, y] = [box.x + (4 + 5) * 1.6 + 8, box.y + (4 + 16 + 12 + 5) * 1.6 + 8]; // GPU 0 at the largest scale
  await tab.mouse.move(x, y);
  await tab.waitForSelector('.tip');
  assert.match(await tab.textContent('.tip'), /gpu-node-0000 GPU 0: used.*team-0\/train-0-0/);
  await tab.mouse.click(x, y);
  await tab.waitForSelector('.panel');
  await done(tab);
});

test('10,000 GPUs: frames while panning, first paint, size', async () => {
  const tab = await open('#/fleet', { page: makePage({ nodes: 1250 }) });
  await tab.waitForTimeout(300);
  const frames = await tab.evaluate(async () => {
    const canvas = document.querySelector('canvas');
    const took = [];
    for (let i = 0; i < 60; ++i) {
      canvas.dispatchEvent(new WheelEvent('wheel', { deltaY: 40, cancelable: true }));
      const start = performance.now();
      await new Promise((next) => requestAnimationFrame(() => setTimeout(next, 0)));
      took.push(performance.now() - start);
    }
    return took.sort((a, b) => a - b);
  });
  const median = frames[30];
  const paint = await tab.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1);
  const bytes = gzipSync(await readFile(new URL('../built/page.js', import.meta.url))).length;
  console.log(`panning 1,250 nodes: median frame ${median.toFixed(1)} ms, worst ${frames.at(-1).toFixed(1)} ms; first paint ${paint.toFixed(0)} ms; page.js ${bytes} bytes gzipped`);
  assert.ok(bytes <= 120 * 1024);
  assert.ok((await stat(new URL('../built/page.css', import.meta.url))).size > 0);
  await shot(tab, 'fleet-10000');
  await done(tab);
});
