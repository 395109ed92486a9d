/** An evaluation on the overview: its title, its size and its main measure for each arm. */

import { format, go } from '../address'
import { backend } from '../backend'
import { Bars } from '../evaluation/bars'
import { metricsOf, titled, type Choice, type Summary } from '../evaluation/measure'
import { sourceQuery } from '../filters'
import { count } from '../format'
import { useLoaded } from '../hooks'
import { Wait } from '../parts'
import type { Evaluation, Overview, Source } from '../types'

export function EvaluationCard({ source, overview }: { source: Source; overview: Overview }) {
  const { data, problem } = useLoaded(() => backend.evaluation(source.slug), [source.slug, overview.version], source.slug)
  const arms = overview.sources.filter((one) => one.parent === source.slug)
  return (
    <article class="card" aria-label={source.title}>
      <h3>
        {arms.some((arm) => arm.live) && <span class="pulse" role="img" aria-label="in progress" />}
        <a href={format('evaluation', [source.slug])}>{data?.summary?.title ?? source.title}</a> {data?.summary && <small>{source.title}</small>}
      </h3>
      {!data && <Wait problem={problem} />}
      {data && (data.summary ? <MainMeasure evaluation={data} summary={data.summary} /> : <ArmsSoFar arms={arms} />)}
    </article>
  )
}

function MainMeasure({ evaluation, summary }: { evaluation: Evaluation; summary: Summary }) {
  const metric = metricsOf(summary)[0]
  const choice: Choice = { group: 'all', metric: metric ?? '', arm: null, against: null }
  return (
    <>
      <p class="note">
        {count(summary.tasks['all'])} tasks, {count(summary.arms.length)} arms{summary.solver ? `, solver: ${summary.solver}` : ''}
      </p>
      {metric ? (
        <>
          <h4>{titled(metric)}</h4>
          <Bars
            evaluation={evaluation}
            summary={summary}
            choice={choice}
            onChoose={(arm) => go(format('evaluation', [evaluation.slug], { metric, arm }))}
          />
        </>
      ) : (
        <p class="note">Nothing was measured.</p>
      )}
    </>
  )
}

function ArmsSoFar({ arms }: { arms: Source[] }) {
  return (
    <>
      <p class="note">Figures appear when every arm is done.</p>
      <ul>
        {arms.map((arm) => (
          <li key={arm.slug}>
            <a href={sourceQuery(arm.slug)}>{arm.title}</a> <small>{count(arm.episodes)}</small>
          </li>
        ))}
      </ul>
    </>
  )
}
