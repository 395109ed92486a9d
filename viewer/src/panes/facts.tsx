/** Everything else that is known about an episode. */

import { backend } from '../backend'
import { count, moment, money, UNKNOWN } from '../format'
import type { Episode } from '../types'

export function FactsPane({ episode }: { episode: Episode }) {
  const raw = backend.raw(episode.key)
  const groups: [string, Record<string, unknown>][] = [
    [
      'Episode',
      {
        id: episode.id,
        task: episode.task.id,
        'task source': episode.task.source,
        ...episode.task.tags,
        policy: [episode.policy.kind, episode.policy.model].filter(Boolean).join(' '),
        agent: episode.policy.agent,
        stop: episode.stop.replaceAll('_', ' '),
        'prompt tokens': count(episode.usage.prompt_tokens),
        'completion tokens': count(episode.usage.completion_tokens),
        cost: money(episode.usage.cost_usd),
      },
    ],
    ['Scores', Object.fromEntries(episode.scores.map((score) => [score.name, `${score.value ?? 'unscored'}${score.explanation ? ` (${score.explanation})` : ''}`]))],
    ['Provenance', { ...episode.provenance, created_at: moment(String(episode.provenance['created_at'] ?? '')) }],
  ]
  return (
    <div class="facts-pane">
      {groups.map(([title, facts]) => (
        <section key={title}>
          <h3>{title}</h3>
          {Object.keys(facts).length === 0 && <p class="note">None were recorded.</p>}
          <dl class="facts">
            {Object.entries(facts).map(([name, value]) => (
              <div key={name}>
                <dt>{name.replaceAll('_', ' ')}</dt>
                <dd>{value === null || value === '' ? UNKNOWN : String(value)}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
      <Listed title="Tampering" texts={episode.tampering} />
      <Listed title="Errors" texts={episode.errors} />
      {raw && episode.kind === 'run' && !episode.live && (
        <p class="raw">
          <a href={raw} download>
            The stored JSON
          </a>
        </p>
      )}
    </div>
  )
}

function Listed({ title, texts }: { title: string; texts: string[] }) {
  if (!texts.length) return null
  return (
    <section>
      <h3>{title}</h3>
      <ul>
        {texts.map((text, index) => (
          <li key={index}>{text}</li>
        ))}
      </ul>
    </section>
  )
}
