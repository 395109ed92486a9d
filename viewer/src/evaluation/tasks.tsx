/** A table of tasks and arms; a task opens with its prompt, its gold patch, and each arm's patch and result. */

import { Fragment } from 'preact'
import { backend } from '../backend'
import { percent, UNKNOWN } from '../format'
import { useLoaded } from '../hooks'
import { Diff, Empty, episodeAddress, Wait } from '../parts'
import type { Evaluation, Result } from '../types'
import type { Summary } from './measure'

interface Props {
  evaluation: Evaluation
  summary: Summary
  group: string
  chosen: string | null
  onChoose: (task: string | null) => void
}

export function Tasks({ evaluation, summary, group, chosen, onChoose }: Props) {
  const metric = evaluation.results.some((one) => one.scores['solved'] != null) ? 'solved' : 'line_recall'
  const cells = new Map<string, Result>()
  for (const one of evaluation.results) {
    const key = `${one.task}\n${one.arm}`
    if ((group === 'all' || one.split === group) && !cells.has(key)) cells.set(key, one)
  }
  const tasks = evaluation.tasks.filter((task) => summary.arms.some((arm) => cells.has(`${task}\n${arm.name}`)))
  return (
    <section aria-label="Tasks">
      <h2>Tasks</h2>
      <p class="note">
        {metric === 'solved' ? '✓ solved, ✗ not solved' : 'The share of the lines of the fix that the report names'}; first sample of each task.
      </p>
      <div class="wide">
        <table class="tasks">
          <thead>
            <tr>
              <th>Task</th>
              {summary.arms.map((arm) => (
                <th key={arm.name}>{arm.title}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {tasks.map((task) => (
              <Fragment key={task}>
                <tr class={task === chosen ? 'chosen' : ''}>
                  <th scope="row">
                    <button class="cell" aria-expanded={task === chosen} onClick={() => onChoose(task === chosen ? null : task)}>
                      <b>{task}</b>
                    </button>
                  </th>
                  {summary.arms.map((arm) => (
                    <td key={arm.name} class="num">
                      <Mark value={cells.get(`${task}\n${arm.name}`)?.scores[metric] ?? null} solved={metric === 'solved'} />
                    </td>
                  ))}
                </tr>
                {task === chosen && (
                  <tr>
                    <td colSpan={summary.arms.length + 1}>
                      <OneTask slug={evaluation.slug} task={task} summary={summary} />
                    </td>
                  </tr>
                )}
              </Fragment>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

function Mark({ value, solved }: { value: number | null; solved: boolean }) {
  if (value === null) return <>{UNKNOWN}</>
  if (!solved || (value !== 0 && value !== 1)) return <>{percent(value)}</>
  return value === 1 ? (
    <span class="good" title="solved">
      ✓
    </span>
  ) : (
    <span class="bad" title="not solved">
      ✗
    </span>
  )
}

function OneTask({ slug, task, summary }: { slug: string; task: string; summary: Summary }) {
  const { data, problem } = useLoaded(() => backend.task(slug, task), [slug, task], `${slug}/${task}`)
  if (!data) return <Wait problem={problem} />
  return (
    <div class="one-task">
      {data.prompt && (
        <details>
          <summary>Prompt</summary>
          <pre>{data.prompt}</pre>
        </details>
      )}
      <h3>Gold patch</h3>
      {data.gold === null ? <Empty>Unknown here: name the task source with --tasks.</Empty> : <Diff text={data.gold} />}
      {data.attempts.map((one, index) => (
        <details key={index} class="attempt">
          <summary>
            <b>{summary.arms.find((arm) => arm.name === one.arm)?.title ?? one.arm}</b>
            {one.sample > 0 && <small> sample {one.sample + 1}</small>} <Verdict title="" value={one.solved} />{' '}
            <Verdict title="official harness: " value={one.official} /> <small>{one.tests}</small>
          </summary>
          <p>
            {one.key && <a href={`${episodeAddress({ key: one.key })}?tab=pack`}>Episode</a>}{' '}
            {one.solver_key && <a href={episodeAddress({ key: one.solver_key })}>Solver's episode</a>}
          </p>
          {one.patch ? <Diff text={one.patch} /> : <p class="note">No patch.</p>}
        </details>
      ))}
    </div>
  )
}

function Verdict({ title, value }: { title: string; value: number | null }) {
  if (value === null) return null
  return <span class={value === 1 ? 'good' : 'bad'}>{`${title}${value === 1 ? '✓ solved' : '✗ not solved'}`}</span>
}
