/** An evaluation: arms side by side with intervals, paired differences, and the tasks behind every bar. */

import { useEffect } from 'preact/hooks'
import { changed, format, go, type Address } from './address'
import { backend } from './backend'
import { count, percent, short } from './format'
import { Empty, episodeAddress, useKeys, useLoaded, Wait } from './parts'
import type { Arm, Comparison, Evaluation, Measured, Overview, Result } from './types'

/** Measures that are no shares of one. */
const UNBOUNDED = /(^|_)(steps|tokens|cost|seconds|rank|tries|repeats)$/
const FIRST = ['solved', 'line_recall', 'function_recall', 'file_recall', 'first_right', 'valid_calls', 'grounding']

interface Choice {
  group: string
  metric: string
  /** The bar whose tasks are shown: an arm, or two of them for a difference. */
  arm: string | null
  against: string | null
}

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
        <Empty>
          {live ? 'It is being played; ' : ''}its figures come when every arm is done. The arms so far are among the sources above.
        </Empty>
      </main>
    )
  }
  return <Figures evaluation={data} summary={data.summary} address={address} />
}

type Summary = NonNullable<Evaluation['summary']>

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
          <Bars arms={arms} choice={choice} onChoose={(arm) => set({ arm, against: null })} />
        </section>
        <section>
          <h2>Paired differences</h2>
          <Differences summary={summary} choice={choice} onChoose={(one) => set({ arm: one.arm, against: one.baseline })} />
        </section>
      </div>
      {choice.arm && <Behind evaluation={evaluation} summary={summary} choice={choice} onClose={() => set({ arm: null, against: null })} />}
      <section>
        <h2>All measures</h2>
        <AllMeasures arms={arms} metrics={metrics} choice={choice} onChoose={(metric, arm) => set({ metric, arm, against: null })} />
      </section>
    </main>
  )
}

function metricsOf(summary: Summary): string[] {
  const measured = new Set<string>()
  for (const arm of summary.arms) {
    for (const of_group of Object.values(arm.groups)) {
      for (const [name, { value }] of Object.entries(of_group)) if (value !== null) measured.add(name)
    }
  }
  return [...FIRST.filter((name) => measured.delete(name)), ...measured]
}

function known(wanted: string | null, names: string[]): string {
  return wanted !== null && names.includes(wanted) ? wanted : (names[0] ?? '')
}

export function titled(name: string): string {
  const words = name.replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

function written(metric: string, value: number | null): string {
  return UNBOUNDED.test(metric) ? short(value) : percent(value)
}

function Bars({ arms, choice, onChoose }: { arms: Arm[]; choice: Choice; onChoose: (arm: string) => void }) {
  const measures = arms.map((arm) => arm.groups[choice.group]?.[choice.metric] ?? null)
  const most = UNBOUNDED.test(choice.metric) ? Math.max(...measures.map((one) => one?.high ?? 0), 1e-9) : 1
  return (
    <ul class="arms">
      {arms.map((arm, index) => {
        const one = measures[index]
        const value = one?.value ?? null
        return (
          <li key={arm.name}>
            <button
              aria-pressed={choice.arm === arm.name && !choice.against}
              onClick={() => onChoose(arm.name)}
              aria-label={`${arm.title}: ${spoken(choice.metric, one)}. Show the tasks behind it`}
            >
              <span class="label">{arm.title}</span>
              <svg viewBox="0 0 100 20" preserveAspectRatio="none" aria-hidden="true">
                <rect class="ground" x={0} y={0} width={100} height={20} />
                {value !== null && <rect class={`a${index % 6}`} x={0} y={3} width={(100 * value) / most} height={14} />}
                {one && value !== null && <Whisker one={one} scale={(at) => (100 * at) / most} />}
              </svg>
              <span class="number">
                {written(choice.metric, value)} <small>{interval(choice.metric, one)}</small>
              </span>
            </button>
          </li>
        )
      })}
    </ul>
  )
}

function Whisker({ one, scale }: { one: Measured; scale: (value: number) => number }) {
  const [low, high] = [scale(one.low ?? 0), scale(one.high ?? 0)]
  return (
    <g class="whisker">
      <path d={`M${low} 10H${high}M${low} 5V15M${high} 5V15`} vector-effect="non-scaling-stroke" />
    </g>
  )
}

function interval(metric: string, one: Measured | null | undefined): string {
  if (!one || one.value === null) return ''
  return `${written(metric, one.low)} to ${written(metric, one.high)}`
}

function spoken(metric: string, one: Measured | null | undefined): string {
  return one && one.value !== null ? `${written(metric, one.value)}, from ${interval(metric, one)}, ${one.count} tasks` : 'not measured'
}

function Differences({ summary, choice, onChoose }: { summary: Summary; choice: Choice; onChoose: (one: Comparison) => void }) {
  const found = summary.comparisons.filter((one) => one.group === choice.group && one.metric === choice.metric)
  if (!found.length) return <Empty>None was worked out for this measure.</Empty>
  const most = Math.max(...found.flatMap((one) => [Math.abs(one.difference.low ?? 0), Math.abs(one.difference.high ?? 0)]), 0.1)
  const scale = (value: number) => 50 + (50 * value) / most
  const title = (name: string) => summary.arms.find((arm) => arm.name === name)?.title ?? name
  return (
    <ul class="arms differences">
      {found.map((one) => {
        const { value } = one.difference
        const sign = (value ?? 0) > 0 ? '+' : ''
        return (
          <li key={`${one.arm}/${one.baseline}`}>
            <button
              aria-pressed={choice.arm === one.arm && choice.against === one.baseline}
              onClick={() => onChoose(one)}
              aria-label={`${title(one.arm)} against ${title(one.baseline)}: ${sign}${written(one.metric, value)}. Show the tasks behind it`}
            >
              <span class="label">
                {title(one.arm)} <small>against {title(one.baseline)}</small>
              </span>
              <svg viewBox="0 0 100 20" preserveAspectRatio="none" aria-hidden="true">
                <rect class="ground" x={0} y={0} width={100} height={20} />
                <path class="zero" d="M50 0V20" vector-effect="non-scaling-stroke" />
                {value !== null && (
                  <>
                    <rect class={value >= 0 ? 'up' : 'down'} x={Math.min(50, scale(value))} y={5} width={Math.abs(scale(value) - 50)} height={10} />
                    <Whisker one={one.difference} scale={scale} />
                  </>
                )}
              </svg>
              <span class="number">
                {sign}
                {written(one.metric, value)}{' '}
                <small>
                  {interval(one.metric, one.difference)}; {one.better} better, {one.worse} worse
                  {one.mcnemar_p !== null ? `, p ${one.mcnemar_p < 0.001 ? '< 0.001' : one.mcnemar_p.toFixed(3)}` : ''}
                </small>
              </span>
            </button>
          </li>
        )
      })}
    </ul>
  )
}

/** The tasks behind a bar: each with its value, and the episode to look at. */
function Behind({ evaluation, summary, choice, onClose }: { evaluation: Evaluation; summary: Summary; choice: Choice; onClose: () => void }) {
  const { arm, against, group, metric } = choice
  const of_arm = (name: string) =>
    evaluation.results.filter((one) => one.arm === name && (group === 'all' || one.split === group) && one.scores[metric] != null)
  const ours = of_arm(arm ?? '')
  const theirs = new Map((against ? of_arm(against) : []).map((one) => [`${one.task}\n${one.sample}`, one]))
  const rows = ours
    .map((one) => ({ one, other: theirs.get(`${one.task}\n${one.sample}`) ?? null }))
    .filter(({ other }) => !against || other)
  const by = ({ one, other }: { one: Result; other: Result | null }) => (one.scores[metric] ?? 0) - (other?.scores[metric] ?? 0)
  rows.sort((a, b) => by(b) - by(a) || (a.one.task < b.one.task ? -1 : 1))
  const title = (name: string | null) => summary.arms.find((one) => one.name === name)?.title ?? name
  return (
    <section class="behind" aria-label="Tasks behind the bar">
      <h2>
        {titled(metric)}: {title(arm)}
        {against ? ` against ${title(against)}` : ''} <small>{count(rows.length)} episodes</small>{' '}
        <button class="plain" onClick={onClose}>
          Close
        </button>
      </h2>
      <div class="wide">
        <table>
          <thead>
            <tr>
              <th>Task</th>
              <th>{title(arm)}</th>
              {against && <th>{title(against)}</th>}
              <th>Stop</th>
              <th />
            </tr>
          </thead>
          <tbody>
            {rows.map(({ one, other }) => (
              <tr key={`${one.task}/${one.sample}`} class={other ? kindOf(by({ one, other })) : ''}>
                <td>{one.key ? <a href={`${episodeAddress({ key: one.key })}?tab=pack`}>{one.task}</a> : one.task}</td>
                <td class="num">{written(metric, one.scores[metric] ?? null)}</td>
                {against && <td class="num">{written(metric, other?.scores[metric] ?? null)}</td>}
                <td>{one.stop?.replaceAll('_', ' ') ?? ''}</td>
                <td>{one.key && other?.key && <a href={format('compare', [one.key, other.key])}>side by side</a>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

function kindOf(difference: number): string {
  return difference > 0 ? 'better' : difference < 0 ? 'worse' : ''
}

function AllMeasures({ arms, metrics, choice, onChoose }: { arms: Arm[]; metrics: string[]; choice: Choice; onChoose: (metric: string, arm: string) => void }) {
  return (
    <div class="wide">
      <table>
        <thead>
          <tr>
            <th>Measure</th>
            {arms.map((arm) => (
              <th key={arm.name}>
                {arm.title}
                {arm.failed > 0 && <small class="bad"> {arm.failed} failed</small>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {metrics.map((metric) => (
            <tr key={metric} class={metric === choice.metric ? 'chosen' : ''}>
              <th scope="row">{titled(metric)}</th>
              {arms.map((arm) => {
                const one = arm.groups[choice.group]?.[metric]
                return (
                  <td key={arm.name} class="num">
                    {one && one.value !== null ? (
                      <button class="cell" onClick={() => onChoose(metric, arm.name)}>
                        {written(metric, one.value)} <small>{interval(metric, one)}</small>
                      </button>
                    ) : (
                      '–'
                    )}
                  </td>
                )
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
