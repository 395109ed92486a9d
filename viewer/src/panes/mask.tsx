/** Of dataset rows: which tokens train. */

import { backend } from '../backend'
import { count, percent } from '../format'
import { useLoaded } from '../hooks'
import { Wait } from '../parts'
import type { Episode, Mask } from '../types'

export function MaskPane({ episode, masks }: { episode: Episode; masks: boolean }) {
  const { data, problem } = useLoaded<Mask | null>(
    () => (masks ? backend.mask(episode.key) : Promise.resolve(null)),
    [episode.key, masks],
    episode.key,
  )
  if (problem) return <Wait problem={problem} />
  if (!masks) return <RolesOnly episode={episode} />
  if (!data) return <Wait />
  return (
    <div class="mask-pane">
      <p>
        <b>
          {count(data.trained)} of {count(data.tokens)} tokens train
        </b>{' '}
        ({percent(data.trained / Math.max(1, data.tokens))}), rendered with the template of {data.model}.
      </p>
      <ul class="legend">
        <li>
          <mark class="trained">trained</mark>
        </li>
        <li>
          <mark class="masked">assistant, but masked</mark>
        </li>
        <li>input only</li>
      </ul>
      <pre class="mask">
        {data.parts.map(([text, kind, tokens], index) =>
          kind === 'read' ? (
            <span key={index}>{text}</span>
          ) : (
            <mark key={index} class={kind} title={`${count(tokens)} tokens`}>
              {text}
            </mark>
          ),
        )}
      </pre>
    </div>
  )
}

/** Without a tokenizer it is only known whose messages train. */
function RolesOnly({ episode }: { episode: Episode }) {
  return (
    <div class="mask-pane">
      <p class="note">
        What the assistant says trains. Start with --model FOLDER to see it token by token, as the model&rsquo;s template renders it.
      </p>
      <pre class="mask">
        {episode.messages.map((message, index) => {
          const calls = message.calls.map((call) => `\n${call.name}(${JSON.stringify(call.arguments)})`).join('')
          const text = `${message.content}${calls}\n\n`
          return message.role === 'assistant' ? (
            <mark key={index} class="trained">
              {text}
            </mark>
          ) : (
            <span key={index}>
              {message.role}: {text}
            </span>
          )
        })}
      </pre>
    </div>
  )
}
