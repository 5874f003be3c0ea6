// The fleet on a canvas: racks as rows, nodes as cells, GPUs as squares, NVLink cliques outlined.
// One layout per answer; a frame draws only the nodes in sight, so 10,000 GPUs pan smoothly.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { plural, since, stateOf, type NodeRow, type Page } from './data';
import { go, with_query } from './state';

export type Colour = 'state' | 'busy' | 'queue' | 'age';

// Held and idle stands out; the rest is one colour that grows stronger.
export const BUSY_STEPS: [number, string, string][] = [
  [5, '#e0a030', 'under 5 %'],
  [30, '#a9c4f0', '30 %'],
  [55, '#7aa3e6', '55 %'],
  [80, '#4a7dd6', '80 %'],
  [101, '#1f4fa8', '100 %'],
];
const busyColour = (busy: number) => BUSY_STEPS.find(([below]) => busy < below)?.[1] ?? '#1f4fa8';

const SQUARE = 12;
const GAP = 2;
const PER_ROW = 4;
const PAD = 5;
const LABEL = 12;
const RACK_LABEL = 16;
const LABEL_LETTER = 7; // of 12 px, on average and a little more

interface Cell {
  node: NodeRow;
  x: number;
  y: number;
  w: number;
  h: number;
}
interface Layout {
  cells: Cell[];
  racks: { label: string; x: number; y: number }[];
  width: number;
  height: number;
}

// Racks stand side by side like words in a line; a rack too wide for a line breaks its nodes.
function layoutOf(nodes: NodeRow[], width: number): Layout {
  const racks = new Map<string, NodeRow[]>();
  for (const node of nodes) {
    const list = racks.get(node.rack);
    if (list) list.push(node);
    else racks.set(node.rack, [node]);
  }
  const out: Layout = { cells: [], racks: [], width, height: 0 };
  let [left, top, lowest] = [4, 4, 4];
  for (const [name, list] of [...racks].sort(([a], [b]) => a.localeCompare(b, 'en', { numeric: true }))) {
    const sizes = list.map(sizeOf);
    const states = list.map((n) => n.states).join('');
    const used = [...states].filter((s) => s === 'U').length;
    const label = `${name || 'no rack'}  ${used}/${states.length} used`;
    const labelled = Math.min(label.length * LABEL_LETTER, width - 8);
    const wide = Math.max(labelled, sizes.reduce((sum, s) => sum + s.w + 6, 0));
    if (left > 4 && left + wide > width) [left, top] = [4, lowest];
    out.racks.push({ label, x: left, y: top });
    let [x, y, tallest, end] = [left, top + RACK_LABEL, 0, left + labelled];
    list.forEach((node, i) => {
      const { w, h } = sizes[i]!;
      if (x + w > width && x > left) {
        x = left;
        y += tallest + 4;
        tallest = 0;
      }
      out.cells.push({ node, x, y, w, h });
      x += w + 6;
      end = Math.max(end, x);
      tallest = Math.max(tallest, h);
    });
    lowest = Math.max(lowest, y + tallest + 10);
    left = end + 12;
  }
  out.height = lowest;
  return out;
}

function sizeOf(node: NodeRow): { w: number; h: number } {
  const columns = Math.max(1, Math.min(PER_ROW, node.states.length));
  const rows = Math.max(1, Math.ceil(node.states.length / PER_ROW));
  return { w: columns * (SQUARE + GAP) - GAP + 2 * PAD, h: rows * (SQUARE + GAP) - GAP + 2 * PAD + LABEL };
}

// The largest scale at which the whole fleet is in sight; a fleet too large for that is panned.
const SCALES = [1.6, 1.3, 1, 0.8, 0.65, 0.5, 0.4, 0.3, 0.25];
function fitted(nodes: NodeRow[], width: number, height: number): { layout: Layout; scale: number } {
  let best = { layout: layoutOf(nodes, width), scale: 1 };
  for (const scale of SCALES) {
    best = { layout: layoutOf(nodes, Math.max(120, width / scale)), scale };
    if (best.layout.height * scale <= height) break;
  }
  return best;
}

const square = (cell: Cell, i: number) => ({
  x: cell.x + PAD + (i % PER_ROW) * (SQUARE + GAP),
  y: cell.y + PAD + LABEL + Math.floor(i / PER_ROW) * (SQUARE + GAP),
});

function hue(text: string): number {
  let h = 7;
  for (const c of text) h = (h * 31 + c.charCodeAt(0)) % 360;
  return h;
}

function painter(page: Page, colour: Colour, css: CSSStyleDeclaration): (node: NodeRow, i: number) => string {
  const named = (name: string) => css.getPropertyValue(`--${name}`).trim();
  const states: Record<string, string> = {};
  for (const s of ['used', 'free', 'unhealthy', 'reserved', 'unknown']) states[s] = named(s);
  const now = Date.parse(page.time);
  return (node, i) => {
    const state = stateOf(node.states[i]);
    if (colour === 'state' || state !== 'used') return states[state] ?? '#888';
    const pod = page.pods[node.holder[i] ?? -1];
    if (colour === 'busy') {
      const busy = node.busy[i] ?? -1;
      return busy < 0 ? states.unknown! : busyColour(busy);
    }
    if (colour === 'queue') return pod ? `hsl(${hue(pod.queue || pod.name.split('/')[0]!)} 60% 48%)` : states.unknown!;
    const hours = pod?.since ? Math.max(0, (now - Date.parse(pod.since)) / 3.6e6) : NaN;
    return Number.isNaN(hours) ? states.unknown! : `hsl(265 60% ${70 - Math.min(45, 9 * Math.log2(1 + hours))}%)`;
  };
}

export function FleetMap({ page, colour, chosen }: { page: Page; colour: Colour; chosen: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ w: 800, h: 420 });
  const [tip, setTip] = useState<{ x: number; y: number; text: string[] } | null>(null);
  const view = useRef({ x: 0, y: 0, zoom: 1 });
  // The nodes and their racks rarely change; their states do.
  const shape = page.nodes.map((n) => `${n.name} ${n.rack} ${n.states.length}`).join();
  const fit = useMemo(() => fitted(page.nodes, size.w, size.h), [shape, size.w, size.h]);
  const layout = useMemo(() => layoutOf(page.nodes, Math.max(120, size.w / fit.scale)), [page.nodes, fit]);
  useMemo(() => (view.current = { x: 0, y: 0, zoom: fit.scale }), [fit]);
  const frame = useRef(0);
  const drawRef = useRef<() => void>(() => undefined);

  drawRef.current = () => {
    frame.current = 0;
    const element = canvas.current;
    const context = element?.getContext('2d');
    if (!element || !context) return;
    const ratio = devicePixelRatio || 1;
    if (element.width !== Math.round(size.w * ratio) || element.height !== Math.round(size.h * ratio)) {
      element.width = Math.round(size.w * ratio);
      element.height = Math.round(size.h * ratio);
    }
    const css = getComputedStyle(document.documentElement);
    const ink = css.getPropertyValue('--ink').trim();
    const soft = css.getPropertyValue('--soft').trim();
    const line = css.getPropertyValue('--line').trim();
    const accent = css.getPropertyValue('--accent').trim();
    const paint = painter(page, colour, css);
    const { x, y, zoom } = view.current;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, element.width, element.height);
    context.setTransform(ratio * zoom, 0, 0, ratio * zoom, -x * ratio * zoom, -y * ratio * zoom);
    const bottom = y + size.h / zoom;
    const right = x + size.w / zoom;
    context.textBaseline = 'top';
    context.font = '12px system-ui, sans-serif';
    context.fillStyle = ink;
    for (const rack of layout.racks) {
      if (zoom < 0.5 || rack.y > bottom || rack.y + RACK_LABEL < y || rack.x > right) continue;
      context.fillText(rack.label, rack.x, rack.y);
    }
    context.font = '9px system-ui, sans-serif';
    for (const cell of layout.cells) {
      if (cell.y > bottom || cell.y + cell.h < y || cell.x > right || cell.x + cell.w < x) continue;
      const { node } = cell;
      const picked = node.name === chosen;
      context.strokeStyle = picked ? accent : line;
      context.lineWidth = picked ? 2 : 1;
      context.strokeRect(cell.x, cell.y, cell.w, cell.h);
      if (zoom >= 0.6) {
        context.fillStyle = node.ready && !node.cordoned ? soft : css.getPropertyValue('--unhealthy').trim();
        context.fillText(shorten(node.name, Math.floor(cell.w / 5.6)), cell.x + 3, cell.y + 2);
      }
      for (let i = 0; i < node.states.length; ++i) {
        const at = square(cell, i);
        context.fillStyle = paint(node, i);
        context.fillRect(at.x, at.y, SQUARE, SQUARE);
      }
      if (zoom >= 0.6) outlines(context, cell, soft);
    }
  };
  const draw = () => {
    if (!frame.current) frame.current = requestAnimationFrame(() => drawRef.current());
  };

  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const seen = new ResizeObserver(() => setSize({ w: element.clientWidth, h: element.clientHeight }));
    seen.observe(element);
    return () => seen.disconnect();
  }, []);
  useEffect(draw);
  useEffect(() => {
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', draw);
    return () => dark.removeEventListener('change', draw);
  }, []);

  const bound = () => {
    const v = view.current;
    v.zoom = Math.min(4, Math.max(fit.scale, v.zoom));
    v.x = Math.min(Math.max(0, v.x), Math.max(0, layout.width - size.w / v.zoom));
    v.y = Math.min(Math.max(0, v.y), Math.max(0, layout.height - size.h / v.zoom));
  };
  const at = (event: MouseEvent): { cell: Cell; gpu: number } | null => {
    const rect = canvas.current!.getBoundingClientRect();
    const v = view.current;
    const x = (event.clientX - rect.left) / v.zoom + v.x;
    const y = (event.clientY - rect.top) / v.zoom + v.y;
    const cell = layout.cells.find((c) => x >= c.x && x <= c.x + c.w && y >= c.y && y <= c.y + c.h);
    if (!cell) return null;
    for (let i = 0; i < cell.node.states.length; ++i) {
      const s = square(cell, i);
      if (x >= s.x && x <= s.x + SQUARE && y >= s.y && y <= s.y + SQUARE) return { cell, gpu: i };
    }
    return { cell, gpu: -1 };
  };
  const drag = useRef<{ x: number; y: number; moved: boolean } | null>(null);
  const move = (event: PointerEvent) => {
    if (drag.current && event.buttons) {
      const dx = event.clientX - drag.current.x;
      const dy = event.clientY - drag.current.y;
      if (Math.abs(dx) + Math.abs(dy) > 3) drag.current.moved = true;
      view.current.x -= dx / view.current.zoom;
      view.current.y -= dy / view.current.zoom;
      drag.current.x = event.clientX;
      drag.current.y = event.clientY;
      bound();
      draw();
      return;
    }
    const hit = at(event);
    const rect = box.current!.getBoundingClientRect();
    setTip(hit ? { x: event.clientX - rect.left, y: event.clientY - rect.top, text: words(page, hit.cell.node, hit.gpu) } : null);
  };
  const wheel = (event: WheelEvent) => {
    if (!event.ctrlKey && layout.height <= size.h / view.current.zoom) return;
    event.preventDefault();
    const v = view.current;
    if (event.ctrlKey) v.zoom *= event.deltaY < 0 ? 1.15 : 1 / 1.15;
    else v.y += event.deltaY / v.zoom;
    bound();
    draw();
  };
  const key = (event: KeyboardEvent) => {
    const step = 60;
    const v = view.current;
    if (event.key === 'ArrowDown') v.y += step;
    else if (event.key === 'ArrowUp') v.y -= step;
    else if (event.key === 'ArrowLeft') v.x -= step;
    else if (event.key === 'ArrowRight') v.x += step;
    else if (event.key === '+') v.zoom *= 1.25;
    else if (event.key === '-') v.zoom /= 1.25;
    else return;
    event.preventDefault();
    bound();
    draw();
  };
  useEffect(() => {
    const element = canvas.current;
    element?.addEventListener('wheel', wheel, { passive: false });
    return () => element?.removeEventListener('wheel', wheel);
  });

  return (
    <div class={page.nodes.length <= 24 ? 'map small' : 'map'} ref={box}>
      <canvas
        ref={canvas}
        role="img"
        tabIndex={0}
        aria-label={`Fleet map: ${plural(page.nodes.length, 'node')}, ${page.gpus.used} of ${plural(page.gpus.total, 'GPU')} used. Arrow keys pan, + and - zoom; the table shows the same.`}
        onPointerDown={(event) => (drag.current = { x: event.clientX, y: event.clientY, moved: false })}
        onPointerMove={move}
        onPointerLeave={() => setTip(null)}
        onPointerUp={(event) => {
          const hit = drag.current?.moved ? null : at(event);
          drag.current = null;
          if (hit) go(with_query({ node: hit.cell.node.name }));
        }}
        onKeyDown={key}
      />
      {tip && (
        <div
          class="tip"
          role="tooltip"
          ref={(e) => {
            if (!e) return;
            e.style.left = `${Math.min(tip.x + 12, size.w - 220)}px`;
            e.style.top = `${Math.min(tip.y + 12, size.h - 60)}px`;
          }}
        >
          {tip.text.map((line, i) => (
            <div key={i}>{line}</div>
          ))}
        </div>
      )}
    </div>
  );
}

function words(page: Page, node: NodeRow, gpu: number): string[] {
  if (gpu < 0) return [node.name, `${node.model} x ${node.states.length}`];
  const pod = page.pods[node.holder[gpu] ?? -1];
  const busy = node.busy[gpu] ?? -1;
  const out = [`${node.name} GPU ${gpu}: ${stateOf(node.states[gpu])}`];
  if (pod) out.push(`${pod.name}${pod.queue ? `, queue ${pod.queue}` : ''}`, `since ${since(pod.since, page.time)}`);
  out.push(busy < 0 ? 'utilisation unknown' : `${busy} % busy`);
  return out;
}

// A frame around the GPUs of each clique of two or more that does not span the whole node.
function outlines(context: CanvasRenderingContext2D, cell: Cell, colour: string): void {
  const cliques = new Map<number, number[]>();
  cell.node.clique.forEach((c, i) => {
    if (c < 0) return;
    const list = cliques.get(c);
    if (list) list.push(i);
    else cliques.set(c, [i]);
  });
  context.strokeStyle = colour;
  context.lineWidth = 0.8;
  for (const members of cliques.values()) {
    if (members.length < 2) continue;
    let [left, top, right, low] = [Infinity, Infinity, -Infinity, -Infinity];
    for (const i of members) {
      const s = square(cell, i);
      left = Math.min(left, s.x);
      top = Math.min(top, s.y);
      right = Math.max(right, s.x + SQUARE);
      low = Math.max(low, s.y + SQUARE);
    }
    context.strokeRect(left - 1.5, top - 1.5, right - left + 3, low - top + 3);
  }
}

function shorten(name: string, room: number): string {
  if (name.length <= room || room < 4) return name;
  const head = Math.ceil((room - 1) / 2);
  return `${name.slice(0, head)}…${name.slice(name.length - (room - 1 - head))}`;
}
