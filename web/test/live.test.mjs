// The page against the program itself: `berth up` with jobs that run and one that waits. Needs BERTH, the path of the program.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { request } from 'node:https';
import { chromium } from 'playwright-core';

const BERTH = process.env.BERTH;
const skip = BERTH ? false : 'BERTH is not set: nothing to look at';
let folder, up, url, browser, cluster;

before(async () => {
  if (!BERTH) return;
  folder = await mkdtemp(`${tmpdir()}/berth-page-`);
  up = spawn(BERTH, ['up', '--in-memory', '--gpus', '32', '--page', '0', '--kubeconfig', `${folder}/kubeconfig`], { stdio: ['ignore', 'pipe', 'inherit'] });
  let printed = '';
  await new Promise((ready, failed) => {
    up.stdout.on('data', (bytes) => {
      printed += bytes;
      if (/^ready/m.test(printed)) ready();
    });
    up.on('exit', () => failed(new Error(`berth up ended: ${printed}`)));
  });
  url = /open (http:\S+)/.exec(printed)[1];
  const config = await readFile(`${folder}/kubeconfig`, 'utf8');
  const field = (name) => new RegExp(`${name}: (\\S+)`).exec(config)[1];
  cluster = { server: field('server'), ca: Buffer.from(field('certificate-authority-data'), 'base64'), token: field('token') };
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
});
after(async () => {
  await browser?.close();
  up?.kill('SIGTERM');
  if (folder) await rm(folder, { recursive: true, force: true });
});

function create(path, body) {
  return new Promise((done, failed) => {
    const call = request(cluster.server + path, { method: 'POST', ca: cluster.ca, headers: { Authorization: `Bearer ${cluster.token}`, 'Content-Type': 'application/json' } }, (answer) => {
      answer.resume();
      answer.on('end', () => (answer.statusCode < 300 ? done() : failed(new Error(`${answer.statusCode}`))));
    });
    call.on('error', failed);
    call.end(JSON.stringify(body));
  });
}
const job = (name, pods, gpus) => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name },
  spec: {
    parallelism: pods,
    completions: pods,
    template: { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i', resources: { limits: { 'nvidia.com/gpu': gpus } } }] } },
  },
});

test('a job that is submitted shows up, runs, and one that cannot says why', { skip }, async () => {
  const faults = [];
  const tab = await browser.newPage({ viewport: { width: 1360, height: 860 } });
  tab.on('pageerror', (error) => faults.push(String(error)));
  await tab.goto(`${url}/#/fleet`);
  await tab.waitForSelector('.answer:has-text("32 of 32 GPUs free")');
  await create('/apis/batch/v1/namespaces/default/jobs', job('train', 2, 8));
  await create('/apis/batch/v1/namespaces/default/jobs', job('giant', 1, 64));
  await tab.waitForSelector('.answer:has-text("16 of 32 GPUs free")');
  await tab.goto(`${url}/#/jobs`);
  await tab.waitForSelector('tr:has-text("default/train"):has-text("running")');
  await tab.click('tr:has-text("default/giant") a');
  await tab.waitForSelector('.verdict');
  assert.match(await tab.textContent('.verdict'), /default\/giant/);
  await tab.goto(`${url}/#/jobs/Job/default/train`);
  await tab.waitForSelector('.meter >> nth=15');
  await tab.goto(`${url}/#/usage`);
  await tab.waitForSelector('tr:has-text("default")');
  if (process.env.BERTH_SCREENSHOTS) await tab.screenshot({ path: `${process.env.BERTH_SCREENSHOTS}/live-usage.png` });
  assert.deepEqual(faults, []);
});
