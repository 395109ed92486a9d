/** A chart with two axes: points with intervals, connected in curves. */

import type { ComponentChildren } from 'preact'

export interface Point {
  x: number
  y: number
  low?: number
  high?: number
  size?: number
  label?: string
  title: string
}

export interface Curve {
  color: number
  points: Point[]
  joined?: boolean
}

interface Props {
  title: string
  x: string
  y: string
  curves: Curve[]
  /** The ends of the axes; by default they follow from the points. */
  most?: { x?: number; y?: number }
  writeX: (value: number) => string
  writeY: (value: number) => string
  diagonal?: boolean
  children?: ComponentChildren
}

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [560, 300, 56, 18, 16, 44]
const LETTER = 6.6
const LINE = 13

export function Plot({ title, x, y, curves, most = {}, writeX, writeY, diagonal, children }: Props) {
  const points = curves.flatMap((curve) => curve.points)
  const xTicks = ticks(most.x ?? Math.max(...points.map((one) => one.x)))
  const yTicks = ticks(most.y ?? Math.max(...points.map((one) => one.high ?? one.y)))
  const across = (value: number) => LEFT + ((WIDTH - LEFT - RIGHT) * value) / (xTicks.at(-1) ?? 1)
  const up = (value: number) => HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * value) / (yTicks.at(-1) ?? 1)
  const places = labelPlaces(points, across, up)
  return (
    <section class="card">
      <h2>{title}</h2>
      {children}
      <svg class="plot" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${title}: ${y} by ${x}`}>
        {yTicks.map((tick) => (
          <g key={tick}>
            <path class="rule" d={`M${LEFT} ${up(tick)}H${WIDTH - RIGHT}`} />
            <text x={LEFT - 6} y={up(tick) + 4} text-anchor="end">
              {writeY(tick)}
            </text>
          </g>
        ))}
        {xTicks.map((tick) => (
          <text key={tick} x={across(tick)} y={HEIGHT - BOTTOM + 16} text-anchor="middle">
            {writeX(tick)}
          </text>
        ))}
        <text x={(LEFT + WIDTH - RIGHT) / 2} y={HEIGHT - 8} text-anchor="middle">
          {x}
        </text>
        {diagonal && <path class="zero dashed" d={`M${across(0)} ${up(0)}L${across(xTicks.at(-1) ?? 1)} ${up(yTicks.at(-1) ?? 1)}`} />}
        {curves.map((curve, number) => (
          <g key={number} class={`curve s${curve.color % 6}`}>
            {curve.joined && <path class="line" d={`M${curve.points.map((one) => `${across(one.x)} ${up(one.y)}`).join('L')}`} />}
            {curve.points.map((one, index) => (
              <g key={index}>
                <title>{one.title}</title>
                {one.low !== undefined && one.high !== undefined && (
                  <path class="line" d={`M${across(one.x)} ${up(one.low)}V${up(one.high)}`} />
                )}
                {one.size !== 0 && <circle class={`a${curve.color % 6}`} cx={across(one.x)} cy={up(one.y)} r={one.size ?? 5} />}
                {one.label && (
                  <text class="label" {...places.get(one)}>
                    {one.label}
                  </text>
                )}
              </g>
            ))}
          </g>
        ))}
      </svg>
    </section>
  )
}

/** Round values from 0 to `most` or a little beyond, about five of them. */
export function ticks(most: number): number[] {
  if (!(most > 0)) return [0, 1]
  const rough = most / 4
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough * 0.999) ?? 10) * power
  return Array.from({ length: Math.ceil(most / step - 1e-9) + 1 }, (_, n) => Number((n * step).toPrecision(12)))
}

/** Labels next to their points, moved down until none covers another. */
function labelPlaces(points: Point[], across: (value: number) => number, up: (value: number) => number) {
  const taken: [number, number, number][] = []
  const places = new Map<Point, { x: number; y: number; 'text-anchor': 'start' | 'end' }>()
  for (const one of points.filter((point) => point.label).sort((a, b) => up(a.y) - up(b.y) || a.x - b.x)) {
    const anchor = across(one.x) > WIDTH * 0.7 ? 'end' : 'start'
    const width = LETTER * (one.label?.length ?? 0)
    const x = across(one.x) + (anchor === 'start' ? 10 : -10)
    const left = anchor === 'start' ? x : x - width
    let y = up(one.y) - 8
    while (taken.some(([start, end, other]) => Math.abs(y - other) < LINE && left < end && start < left + width)) y += 3
    taken.push([left, left + width, y])
    places.set(one, { x, y, 'text-anchor': anchor })
  }
  return places
}
