// Small charts of the last day, drawn as SVG: no library, colours from page.css.
import { useMemo } from 'preact/hooks';
import { plural, type Page, type TrendStep } from './data';

const DAY = 86_400_000;
const WIDTH = 600;
const STEP = 300_000; // of the program
const HIGH = 70;

interface Point {
  x0: number;
  x1: number;
  step: TrendStep;
}

// Steps as columns between two times; nothing where the program did not look.
function columns(steps: TrendStep[], now: number): Point[] {
  const at = (time: number) => (WIDTH * (time - (now - DAY))) / DAY;
  return steps
    .map((step) => {
      const begin = Date.parse(step.at ?? '');
      return { x0: Math.max(0, at(begin)), x1: Math.min(WIDTH, at(begin + STEP)), step };
    })
    .filter((p) => Number.isFinite(p.x0) && p.x1 > p.x0);
}

function bars(points: Point[], from: (s: TrendStep) => number, to: (s: TrendStep) => number, most: number): string {
  const y = (value: number) => (HIGH * (1 - value / most)).toFixed(1);
  return points
    .filter((p) => to(p.step) > from(p.step))
    .map((p) => `M${p.x0.toFixed(1)} ${y(from(p.step))}V${y(to(p.step))}H${p.x1.toFixed(1)}V${y(from(p.step))}Z`)
    .join('');
}

// One line a run of steps that follow one another.
function line(points: Point[], value: (s: TrendStep) => number): string {
  let path = '';
  let end = -1;
  for (const p of points) {
    const v = value(p.step);
    if (v < 0) {
      end = -1;
      continue;
    }
    const y = (HIGH * (1 - Math.min(100, v) / 100)).toFixed(1);
    path += Math.abs(p.x0 - end) < 0.5 ? `L${p.x0.toFixed(1)} ${y}` : `M${p.x0.toFixed(1)} ${y}`;
    path += `H${p.x1.toFixed(1)}`;
    end = p.x1;
  }
  return path;
}

const mean = (numbers: number[]) => (numbers.length === 0 ? 0 : numbers.reduce((a, b) => a + b, 0) / numbers.length);

function Chart({ label, top, children }: { label: string; top: string; children: preact.ComponentChildren }) {
  return (
    <figure class="chart">
      <figcaption>
        {label} <small>{top}</small>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HIGH}`} preserveAspectRatio="none" role="img" aria-label={label}>
        {children}
      </svg>
      <p class="axis" aria-hidden="true">
        <span>24 h ago</span>
        <span>12 h</span>
        <span>now</span>
      </p>
    </figure>
  );
}

// Is the fleet filling up, and do those who hold GPUs use them?
export function Trend({ page }: { page: Page }) {
  const steps = page.trend ?? [];
  const drawn = useMemo(() => {
    const points = columns(steps, Date.parse(page.time));
    const most = Math.max(1, ...steps.map((s) => s.used + s.free + s.out));
    return {
      points,
      most,
      used: bars(points, () => 0, (s) => s.used, most),
      out: bars(points, (s) => s.used, (s) => s.used + s.out, most),
      free: bars(points, (s) => s.used + s.out, (s) => s.used + s.out + s.free, most),
      busy: line(points, (s) => s.busy),
    };
  }, [steps, page.time]);
  if (drawn.points.length === 0) {
    return (
      <section class="card" aria-labelledby="trend">
        <h2 id="trend">The last day</h2>
        <p class="empty">Nothing yet: the program keeps what it sees from its start.</p>
      </section>
    );
  }
  const held = mean(steps.map((s) => s.used));
  const measured = steps.filter((s) => s.busy >= 0).map((s) => s.busy);
  return (
    <section class="card" aria-labelledby="trend">
      <h2 id="trend">The last day</h2>
      <div class="charts">
        <Chart label={`GPUs held: ${held.toFixed(1)} on average`} top={`full height: ${plural(Math.round(drawn.most), 'GPU')}`}>
          <path class="free" d={drawn.free} />
          <path class="unhealthy" d={drawn.out} />
          <path class="used" d={drawn.used} />
        </Chart>
        {measured.length > 0 ? (
          <Chart label={`Busy, of what is held: ${Math.round(mean(measured))} % on average`} top="full height: 100 %">
            <path class="half" d={`M0 ${HIGH / 2}H${WIDTH}`} />
            <path class="busy" d={drawn.busy} />
          </Chart>
        ) : (
          <p class="empty">Nobody measured how busy GPUs are.</p>
        )}
      </div>
    </section>
  );
}
