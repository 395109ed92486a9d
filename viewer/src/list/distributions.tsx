/** Distributions of the fields; clicking a bar or choosing a range filters. */

import { useRef, useState } from 'preact/hooks'
import { ranged, same, toggled, type Filter, type Query } from '../filters'
import { count, short } from '../format'
import type { Distribution, Numbers, Values } from '../types'

interface Props {
  query: Query
  spreads: Distribution[]
  onFilters: (filters: Filter[]) => void
}

export function Distributions({ query, spreads, onFilters }: Props) {
  return (
    <div class="distributions">
      {spreads.map((one) =>
        one.kind === 'values' ? (
          <ValueBars key={one.name} spread={one} filters={query.filters} onFilters={onFilters} />
        ) : (
          <Histogram key={one.name} spread={one} filters={query.filters} onFilters={onFilters} />
        ),
      )}
    </div>
  )
}

function ValueBars({ spread, filters, onFilters }: { spread: Values } & Pick<Props, 'onFilters'> & { filters: Filter[] }) {
  const most = Math.max(1, ...spread.values.map((one) => one.all))
  return (
    <figure class="values" data-field={spread.name}>
      <figcaption>{spread.name}</figcaption>
      <ul>
        {spread.values.map(({ value, count: number, all }) => {
          const filter: Filter = { field: spread.name, op: 'is', value }
          return (
            <li key={value}>
              <button aria-pressed={filters.some((one) => same(one, filter))} onClick={() => onFilters(toggled(filters, filter))}>
                <span class="bar-all" style={{ width: `${(100 * all) / most}%` }} />
                <span class="bar-some" style={{ width: `${(100 * number) / most}%` }} />
                <span class="label" title={String(value)}>{value === '' ? 'unknown' : value}</span>
                <span class="number">{count(number)}</span>
              </button>
            </li>
          )
        })}
      </ul>
      {spread.rest > 0 && <p class="note">and {count(spread.rest)} more</p>}
    </figure>
  )
}

function Histogram({ spread, filters, onFilters }: { spread: Numbers } & Pick<Props, 'onFilters'> & { filters: Filter[] }) {
  const box = useRef<SVGSVGElement>(null)
  const [drag, setDrag] = useState<[number, number] | null>(null)
  const bins = spread.counts.length
  const most = Math.max(1, ...spread.all)
  const edge = (bin: number) => Math.round((spread.low + bin * spread.width) * 1e6) / 1e6
  const bounds = filters.filter((one) => one.field === spread.name && /[<>]/.test(one.op))
  const low = Number(bounds.find((one) => one.op.startsWith('>'))?.value ?? edge(0))
  const high = Number(bounds.find((one) => one.op.startsWith('<'))?.value ?? edge(bins))
  const apply = (from: number, to: number) => {
    const range: Filter[] = []
    if (from > 0) range.push({ field: spread.name, op: '>=', value: edge(from) })
    if (to < bins - 1) range.push({ field: spread.name, op: '<', value: edge(to + 1) })
    onFilters(ranged(filters, spread.name, range))
  }
  const binAt = (event: PointerEvent) => {
    const area = box.current?.getBoundingClientRect()
    if (!area) return 0
    return Math.min(bins - 1, Math.max(0, Math.floor(((event.clientX - area.left) / area.width) * bins)))
  }
  const type = (op: '>=' | '<=', text: string) => {
    const others = bounds.filter((one) => one.op[0] !== op[0])
    onFilters(ranged(filters, spread.name, text === '' ? others : [...others, { field: spread.name, op, value: text }]))
  }
  const inside = (bin: number) =>
    drag ? bin >= Math.min(...drag) && bin <= Math.max(...drag) : edge(bin) >= low && edge(bin) < high
  return (
    <figure class="numbers" data-field={spread.name}>
      <figcaption>{spread.name}</figcaption>
      <svg
        ref={box}
        viewBox={`0 0 ${bins} 40`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${spread.name} from ${short(edge(0))} to ${short(edge(bins))}: drag to choose a range, or type it below`}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId)
          setDrag([binAt(event), binAt(event)])
        }}
        onPointerMove={(event) => drag && setDrag([drag[0], binAt(event)])}
        onPointerUp={(event) => {
          if (drag) apply(Math.min(drag[0], binAt(event)), Math.max(drag[0], binAt(event)))
          setDrag(null)
        }}
        onPointerCancel={() => setDrag(null)}
      >
        <rect class="ground" x={0} y={0} width={bins} height={40} />
        {spread.all.map((all, bin) => {
          const some = spread.counts[bin] ?? 0
          const tall = (number: number) => (number ? Math.max(1, (38 * number) / most) : 0)
          return (
            <g key={bin} class={inside(bin) ? 'in' : 'out'}>
              <rect class="all" x={bin + 0.05} width={0.9} y={40 - tall(all)} height={tall(all)} />
              <rect class="some" x={bin + 0.05} width={0.9} y={40 - tall(some)} height={tall(some)} />
            </g>
          )
        })}
      </svg>
      <div class="range">
        <input
          aria-label={`${spread.name} at least`}
          inputMode="decimal"
          value={bounds.find((one) => one.op.startsWith('>'))?.value ?? ''}
          placeholder={short(edge(0))}
          onChange={(event) => type('>=', event.currentTarget.value.trim())}
        />
        <input
          aria-label={`${spread.name} at most`}
          inputMode="decimal"
          value={bounds.find((one) => one.op.startsWith('<'))?.value ?? ''}
          placeholder={short(spread.whole ? edge(bins) - 1 : edge(bins))}
          onChange={(event) => type('<=', event.currentTarget.value.trim())}
        />
      </div>
    </figure>
  )
}
