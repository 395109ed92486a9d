/** The first page: evaluations with their main figure, runs with their outcomes, datasets with their parts. */

import { useMemo } from 'preact/hooks'
import { sourceQuery } from '../filters'
import { count, money, moment, short } from '../format'
import { useRows } from '../list/use_table'
import { Empty, Wait } from '../parts'
import type { Overview, Row, Source } from '../types'
import { EvaluationCard } from './evaluation'
import { bySource, partsOf, tallyOf, type Tally } from './tally'

export function Landing({ overview }: { overview: Overview }) {
  const { rows, problem } = useRows(overview.version)
  const found = useMemo(() => bySource(rows ?? []), [rows])
  const roots = overview.sources.filter((source) => !source.parent)
  const of_kind = (kind: Source['kind']) => roots.filter((source) => source.kind === kind)
  const [evaluations, runs, datasets] = [of_kind('evaluation'), of_kind('run'), of_kind('dataset')]
  return (
    <main class="landing">
      <header class="heading">
        <h1>Overview</h1>
        <p class="note">{summaryOf(overview)}</p>
      </header>
      {problem !== null && <Wait problem={problem} />}
      {evaluations.length > 0 && (
        <section aria-label="Evaluations">
          <h2>Evaluations</h2>
          <div class="cards">
            {evaluations.map((source) => (
              <EvaluationCard key={source.slug} source={source} overview={overview} />
            ))}
          </div>
        </section>
      )}
      {runs.length > 0 && <Runs runs={runs} found={found} loaded={rows !== null} />}
      {datasets.length > 0 && <Datasets datasets={datasets} found={found} loaded={rows !== null} />}
    </main>
  )
}

function summaryOf({ sources }: Overview): string {
  const total = (kind: Source['kind']) => sources.filter((one) => one.kind === kind).reduce((sum, one) => sum + one.episodes, 0)
  const evaluations = sources.filter((one) => one.kind === 'evaluation').length
  const parts: [number, string][] = [
    [total('run'), 'episode'],
    [total('dataset'), 'dataset row'],
    [evaluations, 'evaluation'],
  ]
  const said = parts.filter(([number]) => number > 0).map(([number, name]) => `${count(number)} ${name}${number === 1 ? '' : 's'}`)
  return said.join(', ') || 'Nothing is here yet.'
}

interface TableProps {
  found: Map<string, Row[]>
  loaded: boolean
}

function Runs({ runs, found, loaded }: { runs: Source[] } & TableProps) {
  return (
    <section aria-label="Runs">
      <h2>Runs</h2>
      <div class="wide">
        <table class="sources-table">
          <thead>
            <tr>
              <th>Run</th>
              <th class="num">Episodes</th>
              <th>Outcomes</th>
              <th class="num">Mean steps</th>
              <th class="num">Tokens</th>
              <th class="num">Cost</th>
              <th>Last episode</th>
            </tr>
          </thead>
          <tbody>
            {runs.map((source) => (
              <RunLine key={source.slug} source={source} tally={loaded ? tallyOf(found.get(source.slug) ?? []) : null} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

function RunLine({ source, tally }: { source: Source; tally: Tally | null }) {
  return (
    <tr>
      <SourceName source={source} />
      <td class="num">
        {count(source.episodes)}
        {source.live && source.planned ? ` of ${count(source.planned)}` : ''}
      </td>
      <td>{tally ? <Outcomes tally={tally} /> : <span class="note">Loading …</span>}</td>
      <td class="num">{short(tally?.steps)}</td>
      <td class="num">{short(tally?.tokens || null)}</td>
      <td class="num">{money(tally?.cost)}</td>
      <td>{moment(tally?.last ?? '')}</td>
    </tr>
  )
}

function SourceName({ source }: { source: Source }) {
  return (
    <th scope="row">
      {source.live && <span class="pulse" role="img" aria-label="in progress" />}
      <a href={sourceQuery(source.slug)}>{source.title}</a>
      {source.indexed < 1 && <small> {Math.floor(source.indexed * 100)}% indexed</small>}
      {source.problem && <small class="bad"> ⚠ {source.problem}</small>}
    </th>
  )
}

/** Outcomes as a bar, and in words. */
export function Outcomes({ tally }: { tally: Tally }) {
  if (!tally.episodes) return <span class="note">No episodes yet.</span>
  return (
    <div class="outcomes">
      <span class="outcome-bar" aria-hidden="true">
        {tally.outcomes.map((one) => (
          <i key={one.outcome} class={`q-${one.quality}`} style={{ flexGrow: one.count }} />
        ))}
      </span>
      <span>
        {tally.outcomes.map((one, index) => (
          <span key={one.outcome}>
            {index > 0 && ', '}
            <span class={one.quality}>
              {count(one.count)} {one.outcome || 'unknown'}
            </span>
          </span>
        ))}
      </span>
    </div>
  )
}

function Datasets({ datasets, found, loaded }: { datasets: Source[] } & TableProps) {
  return (
    <section aria-label="Datasets">
      <h2>Datasets</h2>
      <p class="note">Rows are made from episodes, and are not counted as episodes.</p>
      <div class="wide">
        <table class="sources-table">
          <thead>
            <tr>
              <th>Dataset</th>
              <th>View</th>
              <th>Split</th>
              <th class="num">Rows</th>
              <th class="num">Made from</th>
            </tr>
          </thead>
          <tbody>
            {datasets.map((source) => (
              <DatasetLines key={source.slug} source={source} rows={loaded ? (found.get(source.slug) ?? []) : null} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

function DatasetLines({ source, rows }: { source: Source; rows: Row[] | null }) {
  const parts = partsOf(rows ?? [])
  if (!parts.length) {
    return (
      <tr>
        <SourceName source={source} />
        <td colSpan={4}>{rows ? <Empty>No rows.</Empty> : <span class="note">Loading …</span>}</td>
      </tr>
    )
  }
  return (
    <>
      {parts.map((part, index) => (
        <tr key={`${part.view}/${part.split}`}>
          {index === 0 ? <SourceName source={source} /> : <td />}
          <td>
            <a href={`${sourceQuery(source.slug)}&${new URLSearchParams({ f: `view|is|${part.view}` })}`}>{part.view}</a>
          </td>
          <td>{part.split}</td>
          <td class="num">{count(part.rows)}</td>
          <td class="num">
            {count(part.episodes)} {part.episodes === 1 ? 'episode' : 'episodes'}
          </td>
        </tr>
      ))}
    </>
  )
}
