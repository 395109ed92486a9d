/** The tasks behind a bar, each with its value and a link to its episode. */

import { useEffect, useRef } from 'preact/hooks'
import { count } from '../format'
import { compareAddress, Empty, episodeAddress } from '../parts'
import type { Evaluation, Result } from '../types'
import { titled, written, type Choice, type Summary } from './measure'

/** Pixels of the list that must be visible when it appears. */
const MARGIN = 160
/** The share of the screen that the bars keep. */
const KEPT = 0.55

export function Behind({ evaluation, summary, choice, onClose }: { evaluation: Evaluation; summary: Summary; choice: Choice; onClose: () => void }) {
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
  const section = useRef<HTMLElement>(null)
  useEffect(() => {
    const top = section.current?.getBoundingClientRect().top ?? 0
    if (top > innerHeight - MARGIN) scrollBy(0, top - innerHeight * KEPT)
  }, [arm, against])
  const title = (name: string | null) => summary.arms.find((one) => one.name === name)?.title ?? name
  return (
    <section class="behind" ref={section} aria-label="Tasks behind the bar">
      <h2>
        {titled(metric)}: {title(arm)}
        {against ? ` against ${title(against)}` : ''} <small>{count(rows.length)} episodes</small>{' '}
        <button class="plain" onClick={onClose}>
          Close
        </button>
      </h2>
      {rows.length === 0 && <Empty>No episode has this measure.</Empty>}
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
                <td>
                  <Task result={one} />
                </td>
                <td class="num">{written(evaluation.metrics[metric], one.scores[metric] ?? null)}</td>
                {against && <td class="num">{written(evaluation.metrics[metric], other?.scores[metric] ?? null)}</td>}
                <td>{one.stop?.replaceAll('_', ' ') ?? ''}</td>
                <td>{one.key && other?.key && <a href={compareAddress(one.key, other.key)}>side by side</a>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

function Task({ result: { task, key, solver_key: solver } }: { result: Result }) {
  const first = key ?? solver
  return (
    <>
      {first ? <a href={`${episodeAddress({ key: first })}?tab=pack`}>{task}</a> : task}
      {key && solver && (
        <>
          {' '}
          <a href={episodeAddress({ key: solver })}>
            <small>solver</small>
          </a>
        </>
      )}
    </>
  )
}

function kindOf(difference: number): string {
  return difference > 0 ? 'better' : difference < 0 ? 'worse' : ''
}
