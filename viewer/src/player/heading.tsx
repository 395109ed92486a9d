/** What an episode is, the other episodes of its task, and the dataset rows that were made from it. */

import { count, money, seconds, short } from '../format'
import { compareAddress, episodeAddress, Outcome, Strip, Tampered } from '../parts'
import type { Episode, Row } from '../types'

export function Heading({ episode, position }: { episode: Episode; position: number }) {
  const { row, usage } = episode
  const tokens = (usage.prompt_tokens ?? 0) + (usage.completion_tokens ?? 0)
  return (
    <header class="heading">
      <h1>{episode.task.id || episode.id}</h1>
      <p>
        <Outcome outcome={row?.outcome ?? episode.stop.replaceAll('_', ' ')} />
        <span title={[episode.policy.kind, episode.policy.model].join(' ')}>{policyOf(episode) || 'in progress'}</span>
        <span>{count(episode.steps.length)} steps</span>
        {tokens > 0 && <span>{short(tokens)} tokens</span>}
        {episode.tampering.length > 0 && <Tampered title={episode.tampering.join('\n')} />}
        {row?.seconds != null && <span>{seconds(row.seconds)}</span>}
        {usage.cost_usd != null && <span>{money(usage.cost_usd)}</span>}
        {episode.live && <span class="running">in progress</span>}
        {episode.cut > 0 && <span class="note">{count(episode.cut)} long texts are truncated here</span>}
      </p>
      <SameTrace episode={episode} />
      <Others episode={episode} position={position} />
    </header>
  )
}

/** The dataset rows made from an episode; for such a row, the episode and its other rows. */
function SameTrace({ episode }: { episode: Episode }) {
  const others = episode.siblings.filter((row) => row.key !== episode.key && traceOf(row) === (episode.row && traceOf(episode.row)))
  const rows = others.filter((row) => row.kind === 'dataset' && !row.facts?.['decision'])
  const runs = episode.kind === 'dataset' ? others.filter((row) => row.kind === 'run') : []
  if (!rows.length && !runs.length) return null
  return (
    <p class="same-trace note">
      {episode.kind === 'dataset' && <span>{`Row of ${viewOf(episode.row)}`}</span>}
      {runs.length > 0 && <Links title="Episode" rows={runs} text={(row) => row.source} />}
      {rows.length > 0 && <Links title={episode.kind === 'dataset' ? 'Other rows' : 'Dataset rows'} rows={rows} text={viewOf} />}
    </p>
  )
}

function Links({ title, rows, text }: { title: string; rows: Row[]; text: (row: Row) => string }) {
  return (
    <span>
      {title}:{' '}
      {rows.map((row, index) => (
        <span key={row.key}>
          {index > 0 && ', '}
          <a href={episodeAddress(row)}>{text(row)}</a>
        </span>
      ))}
    </span>
  )
}

function viewOf(row: Row | null): string {
  return [row?.source, row?.facts?.['view'], row?.facts?.['split']].filter(Boolean).join(' / ')
}

/** The id of the episode that a row shows or was made from. */
function traceOf(row: Row): string {
  return String(row.facts?.['episode'] ?? row.id)
}

/** The other episodes of the task. Dataset rows repeat episodes, and are not counted. */
function Others({ episode, position }: { episode: Episode; position: number }) {
  const trace = episode.kind === 'dataset' && episode.row ? traceOf(episode.row) : null
  const others = episode.siblings.filter((row) => row.kind === 'run' && row.key !== episode.key && traceOf(row) !== trace)
  if (!others.length) return null
  return (
    <details class="others">
      <summary>
        {others.length === 1 ? '1 more episode' : `${count(others.length)} more episodes`} of this task <kbd>c</kbd>
      </summary>
      <ul>
        {others.map((row) => (
          <li key={row.key}>
            <a href={compareAddress(episode.key, row.key, position)}>side by side</a>
            <a href={episodeAddress(row)}>open</a>
            <Outcome outcome={row.outcome} />
            <span>
              {row.policy} <span class="note">{row.source}</span>
            </span>
            <Strip strip={row.strip} />
          </li>
        ))}
      </ul>
    </details>
  )
}

/** The policy, as in the list: an arm by its label, a model by the last part of its path. */
export function policyOf({ row, policy }: Episode): string {
  return row?.policy || [policy.kind, policy.model].filter(Boolean).join(' ')
}
