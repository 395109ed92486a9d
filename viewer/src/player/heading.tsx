/** What an episode is, and the others of its task. */

import { format } from '../address'
import { count, money, seconds, short } from '../format'
import { episodeAddress, Outcome, Strip, Tampered } from '../parts'
import type { Episode } from '../types'

export function Heading({ episode, position }: { episode: Episode; position: number }) {
  const { row, usage } = episode
  const tokens = (usage.prompt_tokens ?? 0) + (usage.completion_tokens ?? 0)
  return (
    <header class="heading">
      <h1>{episode.task.id || episode.id}</h1>
      <p>
        <Outcome outcome={row?.outcome ?? episode.stop.replaceAll('_', ' ')} />
        <span title={[episode.policy.kind, episode.policy.model].join(' ')}>{policyOf(episode) || 'in flight'}</span>
        <span>{count(episode.steps.length)} steps</span>
        {tokens > 0 && <span>{short(tokens)} tokens</span>}
        {episode.tampering.length > 0 && <Tampered title={episode.tampering.join('\n')} />}
        {row?.seconds != null && <span>{seconds(row.seconds)}</span>}
        {usage.cost_usd != null && <span>{money(usage.cost_usd)}</span>}
        {episode.live && <span class="running">in progress</span>}
        {episode.cut > 0 && <span class="note">{count(episode.cut)} long texts are cut here</span>}
      </p>
      <Others episode={episode} position={position} />
    </header>
  )
}

function Others({ episode, position }: { episode: Episode; position: number }) {
  const others = episode.siblings.filter((row) => row.key !== episode.key)
  if (!others.length) return null
  return (
    <details class="others">
      <summary>
        {count(others.length)} more of this task <kbd>c</kbd>
      </summary>
      <ul>
        {others.map((row) => (
          <li key={row.key}>
            <a href={format('compare', [episode.key, row.key], { step: position })}>side by side</a>
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

/** Who decided, as in the list: a model folder by its last name. */
export function policyOf({ row, policy }: Episode): string {
  return row?.policy || [policy.kind, policy.model].filter(Boolean).join(' ')
}
