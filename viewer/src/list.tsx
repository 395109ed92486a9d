/** The list: every episode as a row, to be sorted, filtered and searched. */

import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { format, go, type Address } from './address'
import { backend } from './backend'
import { Distributions } from './distributions'
import { describe, OPERATORS, readQuery, readTyped, same, writeQuery, type Filter, type Operator, type Query } from './filters'
import { count, moment, money, seconds, short } from './format'
import { Empty, Legend, Outcome, Strip, useKeys, useWide, Wait } from './parts'
import type { Overview, Row } from './types'

const PAGE = 100
const COLUMNS: [string, string][] = [
  ['outcome', 'Outcome'],
  ['task', 'Task'],
  ['policy', 'Policy'],
  ['strip', 'Decisions'],
  ['steps', 'Steps'],
  ['tokens', 'Tokens'],
  ['cost', 'Cost'],
  ['seconds', 'Time'],
  ['created', 'Made'],
]

/** Where the list was scrolled to when it was left, by its address. */
const places = new Map<string, { top: number; chosen: number }>()

export function List({ address, overview }: { address: Address; overview: Overview }) {
  const query = useMemo(() => readQuery(address.params), [address.params.toString()])
  const set = (next: Partial<Query>, replace = false) =>
    go({ view: 'list', keys: [], params: writeQuery({ ...query, ...next }) }, replace)
  const wide = useWide('(min-width: 60rem)')
  return (
    <main class="list">
      <Bar query={query} set={set} overview={overview} />
      <details class="spread" open={wide}>
        <summary>Distributions</summary>
        <Distributions query={query} version={overview.version} onFilters={(filters) => set({ filters })} />
      </details>
      <Rows key={address.params.toString()} query={query} set={set} version={overview.version} />
    </main>
  )
}

function Bar({ query, set, overview }: { query: Query; set: (next: Partial<Query>, replace?: boolean) => void; overview: Overview }) {
  const [typed, setTyped] = useState(query.text)
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => setTyped(query.text), [query.text])
  useEffect(() => {
    if (typed === query.text) return
    const timer = setTimeout(() => {
      if (!readTyped(typed, overview.fields).filters.length) set({ text: typed.trim() }, true)
    }, 250)
    return () => clearTimeout(timer)
  }, [typed])
  useKeys((key) => {
    if (key !== '/') return false
    input.current?.focus()
    return true
  })
  const submit = (event: Event) => {
    event.preventDefault()
    const read = readTyped(typed, overview.fields)
    setTyped(read.text)
    set({ text: read.text, filters: [...query.filters, ...read.filters] })
  }
  return (
    <div class="bar">
      <form role="search" onSubmit={submit}>
        <input
          ref={input}
          type="search"
          aria-label="Search what was said and seen"
          placeholder='Search what was said and seen, or steps>5 …  ( / )'
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
          onKeyDown={(event) => event.key === 'Escape' && event.currentTarget.blur()}
        />
      </form>
      <AddFilter overview={overview} onAdd={(filter) => set({ filters: [...query.filters, filter] })} />
      {(query.filters.length > 0 || query.text) && (
        <ul class="chips" aria-label="Filters">
          {query.filters.map((filter) => (
            <li key={describe(filter)}>
              <button
                onClick={() => set({ filters: query.filters.filter((one) => !same(one, filter)) })}
                title="Take this filter away"
              >
                {describe(filter)} <span aria-hidden="true">×</span>
              </button>
            </li>
          ))}
          <li>
            <button class="plain" onClick={() => set({ filters: [], text: '' })}>
              Clear all
            </button>
          </li>
        </ul>
      )}
      {query.text && !overview.searchable && <p class="note">Still reading: more may be found in a moment.</p>}
    </div>
  )
}

function AddFilter({ overview, onAdd }: { overview: Overview; onAdd: (filter: Filter) => void }) {
  const [field, setField] = useState('outcome')
  const [op, setOp] = useState<Operator>('is')
  const [value, setValue] = useState('')
  const numeric = overview.fields.find((one) => one.name === field)?.numeric
  const add = (event: Event) => {
    event.preventDefault()
    onAdd({ field, op, value: op === 'unknown' ? '' : value })
    setValue('')
  }
  return (
    <form class="add-filter" onSubmit={add}>
      <select aria-label="Field" value={field} onChange={(event) => setField(event.currentTarget.value)}>
        {overview.fields.map(({ name }) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      <select aria-label="Comparison" value={op} onChange={(event) => setOp(event.currentTarget.value as Operator)}>
        {OPERATORS.map(([name, title]) => (
          <option key={name} value={name}>
            {title}
          </option>
        ))}
      </select>
      {op !== 'unknown' && (
        <input
          aria-label="Value"
          value={value}
          inputMode={numeric ? 'decimal' : 'text'}
          onInput={(event) => setValue(event.currentTarget.value)}
          size={10}
        />
      )}
      <button>Filter</button>
    </form>
  )
}

function Rows({ query, set, version }: { query: Query; set: (next: Partial<Query>) => void; version: number }) {
  const name = writeQuery(query).toString()
  const wide = useWide('(min-width: 60rem)')
  const height = wide ? 34 : 62
  const [pages, setPages] = useState<Map<number, Row[]>>(new Map())
  const [total, setTotal] = useState<number | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  const [chosen, setChosen] = useState(places.get(name)?.chosen ?? 0)
  const [span, setSpan] = useState<[number, number]>([0, 30])
  const scroller = useRef<HTMLDivElement>(null)
  const asked = useRef(new Map<number, number>())

  const measure = () => {
    const box = scroller.current
    if (!box) return
    setSpan([Math.max(0, Math.floor(box.scrollTop / height) - 8), Math.ceil((box.scrollTop + box.clientHeight) / height) + 8])
    places.set(name, { top: box.scrollTop, chosen })
  }
  useEffect(() => {
    for (let page = Math.floor(span[0] / PAGE); page <= Math.floor(span[1] / PAGE); page++) {
      if (asked.current.get(page) === version) continue
      asked.current.set(page, version)
      backend.page(query, page * PAGE, PAGE).then(
        (found) => {
          setTotal(found.total)
          setProblem(null)
          setPages((before) => new Map(before).set(page, found.rows))
        },
        (error: Error) => setProblem(error.message),
      )
    }
  }, [span[0], span[1], version])
  useEffect(() => {
    const before = places.get(name)
    if (scroller.current && before) scroller.current.scrollTop = before.top
    measure()
    addEventListener('resize', measure)
    return () => removeEventListener('resize', measure)
  }, [total === null, height])
  useEffect(() => {
    const known = places.get(name)
    places.set(name, { top: known?.top ?? 0, chosen })
  }, [chosen])

  const rowAt = (index: number) => pages.get(Math.floor(index / PAGE))?.[index % PAGE]
  /** The chosen row, ahead of the screen while keys come quickly. */
  const latest = useRef(chosen)
  const choose = (index: number) => {
    const box = scroller.current
    if (!box || total === null) return
    const next = Math.min(Math.max(0, index), total - 1)
    latest.current = next
    setChosen(next)
    if (next * height < box.scrollTop) box.scrollTop = next * height
    const room = box.clientHeight - (box.querySelector('.head')?.clientHeight ?? 0)
    if ((next + 1) * height > box.scrollTop + room) box.scrollTop = (next + 1) * height - room
    setTimeout(() => box.querySelector<HTMLElement>(`[data-index="${latest.current}"]`)?.focus({ preventScroll: true }), 30)
  }
  useKeys((key) => {
    const jump = Math.floor((scroller.current?.clientHeight ?? 400) / height) - 1
    const moves: Record<string, number> = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: jump, PageUp: -jump }
    const row = rowAt(latest.current)
    if (key === 'Home') choose(0)
    else if (key === 'End') choose((total ?? 1) - 1)
    else if (moves[key] !== undefined) choose(latest.current + (moves[key] ?? 0))
    else if (key === 'Enter' && row && !busyElsewhere()) go(format('episode', [row.key], { q: query.text }))
    else return false
    return true
  })
  const indices = Array.from({ length: Math.max(0, Math.min(span[1], total ?? 0) - span[0]) }, (_, n) => span[0] + n)
  return (
    <section class="rows" aria-label="Episodes">
      <div class="above">
        <p class="total" role="status">
          {total === null ? 'Counting …' : `${count(total)} ${total === 1 ? 'episode' : 'episodes'}`}
        </p>
        <Legend />
      </div>
      {problem !== null && <Wait problem={problem} />}
      <div class="scroller" ref={scroller} onScroll={measure} tabIndex={-1}>
        <Head query={query} set={set} />
        {total === 0 && <Empty>Nothing meets these filters.</Empty>}
        <ol style={{ height: `${(total ?? 0) * height}px` }}>
          {indices.map((index) => (
            <RowLine key={index} row={rowAt(index)} index={index} height={height} chosen={index === chosen} search={query.text} />
          ))}
        </ol>
      </div>
    </section>
  )
}

/** Whether Enter is meant for a button or a link that is no row. */
function busyElsewhere(): boolean {
  return document.activeElement?.matches('button, summary, a:not(.line)') ?? false
}

function Head({ query, set }: { query: Query; set: (next: Partial<Query>) => void }) {
  const descending = query.sort.startsWith('-')
  const by = descending ? query.sort.slice(1) : query.sort
  return (
    <div class="head line">
      {COLUMNS.map(([name, title]) =>
        name === 'strip' ? (
          <span key={name} class={`c-${name}`}>
            {title}
          </span>
        ) : (
          <button
            key={name}
            class={`c-${name}`}
            aria-pressed={name === by}
            aria-label={`Sort by ${title.toLowerCase()}${name === by ? (descending ? ', descending' : ', ascending') : ''}`}
            onClick={() => set({ sort: name === by && descending ? name : `-${name}` })}
          >
            {title}
            <span aria-hidden="true">{name === by ? (descending ? ' ↓' : ' ↑') : ''}</span>
          </button>
        ),
      )}
    </div>
  )
}

interface LineProps {
  row: Row | undefined
  index: number
  height: number
  chosen: boolean
  search: string
}

function RowLine({ row, index, height, chosen, search }: LineProps) {
  const style = { top: `${index * height}px`, height: `${height}px` }
  if (!row) return <li class="line pending" style={style} />
  return (
    <li style={style} class={chosen ? 'chosen' : ''}>
      <a class="line" href={format('episode', [row.key], { q: search })} data-index={index} tabIndex={chosen ? 0 : -1}>
        <span class="c-outcome">
          <Outcome outcome={row.outcome} />
        </span>
        <span class="c-task" title={`${row.task}\n${row.source}`}>
          {row.task || row.id}
        </span>
        <span class="c-policy" title={row.policy}>
          {row.policy || row.source}
        </span>
        <span class="c-strip">
          <Strip strip={row.strip} />
        </span>
        <span class="c-steps">{count(row.steps)}</span>
        <span class="c-tokens">{row.tokens ? short(row.tokens) : '–'}</span>
        <span class="c-cost">{money(row.cost)}</span>
        <span class="c-seconds">{seconds(row.seconds)}</span>
        <span class="c-created">{moment(row.created)}</span>
      </a>
    </li>
  )
}

/** The sources as a row of links above everything. */
export function Sources({ address, overview }: { address: Address; overview: Overview }) {
  const query = readQuery(address.params)
  const chosen = address.view === 'list' ? query.filters.filter((one) => one.field === 'source').map((one) => String(one.value)) : []
  return (
    <nav class="sources" aria-label="Sources">
      <a href="#/list" aria-current={address.view === 'list' && chosen.length === 0 ? 'page' : undefined}>
        Everything
      </a>
      {overview.sources.map((source) => (
        <a
          key={source.slug}
          class={`${source.kind}${source.parent ? ' child' : ''}`}
          href={
            source.kind === 'evaluation'
              ? `#/evaluation/${encodeURIComponent(source.slug)}`
              : `#/list?${writeQuery({ filters: [{ field: 'source', op: 'is', value: source.slug }], text: '', sort: '-created' })}`
          }
          aria-current={
            (source.kind === 'evaluation' ? address.view === 'evaluation' && address.keys[0] === source.slug : chosen.includes(source.slug))
              ? 'page'
              : undefined
          }
          title={source.problem ?? `${source.kind} ${source.name}`}
        >
          {source.live && <span class="pulse" aria-label="in progress" />}
          {source.name}
          {source.kind !== 'evaluation' && (
            <small>
              {count(source.episodes)}
              {source.live && source.planned ? ` of ${count(source.planned)}` : ''}
              {source.indexed < 1 ? `, ${Math.floor(source.indexed * 100)}% read` : ''}
            </small>
          )}
          {source.problem && <span class="warn" role="img" aria-label={source.problem}> ⚠</span>}
        </a>
      ))}
    </nav>
  )
}
