/** An evaluation: arms with intervals, paired differences, and the tasks behind every bar. */

import { useEffect } from 'preact/hooks'
import { changed, go, type Address } from '../address'
import { backend } from '../backend'
import { count } from '../format'
import { useKeys, useLoaded } from '../hooks'
import { Empty, Wait } from '../parts'
import type { Evaluation, Overview } from '../types'
import { Bars } from './bars'
import { Behind } from './behind'
import { Differences } from './differences'
import { metricsOf, titled, type Choice, type Summary } from './measure'
import { Pictures } from './pictures'
import { AllMeasures } from './table'
import { Tasks } from './tasks'
import { Tools, Worth } from './worth'

export function EvaluationView({ address, overview }: { address: Address; overview: Overview }) {
  const slug = address.keys[0] ?? ''
  const source = overview.sources.find((one) => one.slug === slug)
  const live = overview.sources.some((one) => one.parent === slug && one.live)
  const { data, problem } = useLoaded(() => backend.evaluation(slug), [slug, overview.version], slug)
  useEffect(() => {
    document.title = `${data?.summary?.title ?? source?.name ?? 'Evaluation'} · Gumshoe`
  }, [data])
  if (!data) return <Wait problem={problem} />
  if (!data.summary) {
    return (
      <main class="evaluation">
        <h1>{data.name}</h1>
        <Empty>{live ? 'Still running: ' : ''}figures appear when every arm is done. The arms so far are listed at the top.</Empty>
      </main>
    )
  }
  return <Figures evaluation={data} summary={data.summary} address={address} />
}

function Figures({ evaluation, summary, address }: { evaluation: Evaluation; summary: Summary; address: Address }) {
  const groups = Object.keys(summary.tasks)
  const metrics = metricsOf(summary)
  const choice: Choice = {
    group: known(address.params.get('group'), groups),
    metric: known(address.params.get('metric'), metrics),
    arm: address.params.get('arm'),
    against: address.params.get('against'),
  }
  const set = (changes: Partial<Choice>) => go(changed(address, changes), true)
  const arms = summary.arms.filter((arm) => arm.groups[choice.group])
  useKeys((key) => {
    if (key !== 'Escape' || !choice.arm) return false
    set({ arm: null, against: null })
    return true
  })
  return (
    <main class="evaluation">
      <header class="heading">
        <h1>{summary.title}</h1>
        {summary.flaky?.length > 0 && (
          <p class="note">
            Left out of every arm, because their gold patch does not always fix them:{' '}
            {summary.flaky.map(flakyTask).join(', ')}.
          </p>
        )}
        <p>
          <span>{count(summary.tasks['all'])} tasks</span>
          <span>{count(summary.arms.length)} arms</span>
          <span class="note">seed {summary.seed}, 95% intervals</span>
        </p>
        <div class="choices">
          <label>
            Tasks{' '}
            <select value={choice.group} onChange={(event) => set({ group: event.currentTarget.value })}>
              {groups.map((name) => (
                <option key={name} value={name}>
                  {titled(name)} ({summary.tasks[name]})
                </option>
              ))}
            </select>
          </label>
          <label>
            Measure{' '}
            <select value={choice.metric} onChange={(event) => set({ metric: event.currentTarget.value })}>
              {metrics.map((name) => (
                <option key={name} value={name}>
                  {titled(name)}
                </option>
              ))}
            </select>
          </label>
        </div>
      </header>
      <div class="plots">
        <section>
          <h2>{titled(choice.metric)}</h2>
          <Bars evaluation={evaluation} summary={summary} choice={choice} onChoose={(arm) => set({ arm, against: null })} />
        </section>
        <section>
          <h2>Paired differences</h2>
          <Differences evaluation={evaluation} summary={summary} choice={choice} onChoose={(one) => set({ arm: one.arm, against: one.baseline })} />
        </section>
      </div>
      {choice.arm && <Behind evaluation={evaluation} summary={summary} choice={choice} onClose={() => set({ arm: null, against: null })} />}
      <Worth evaluation={evaluation} summary={summary} group={choice.group} />
      <Pictures summary={summary} />
      <section>
        <h2>All measures</h2>
        <AllMeasures
          arms={arms}
          metrics={metrics}
          meanings={evaluation.metrics}
          choice={choice}
          onChoose={(metric, arm) => set({ metric, arm, against: null })}
        />
      </section>
      <Tools summary={summary} />
      <Tasks
        evaluation={evaluation}
        summary={summary}
        group={choice.group}
        chosen={address.params.get('task')}
        onChoose={(task) => go(changed(address, { task }), true)}
      />
    </main>
  )
}

function known(wanted: string | null, names: string[]): string {
  return wanted !== null && names.includes(wanted) ? wanted : (names[0] ?? '')
}

function flakyTask(one: Summary['flaky'][number]): string {
  return `${one.task_id} (${one.passed} of ${one.runs} runs${one.why ? `: ${one.why}` : ''})`
}
