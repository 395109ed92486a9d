/** For dataset rows: which tokens train. It opens at the current step. */

import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { backend } from '../backend'
import { count, percent } from '../format'
import { useLoaded } from '../hooks'
import { Wait } from '../parts'
import type { Episode, Mask } from '../types'

interface Props {
  episode: Episode
  position: number
  masks: boolean
}

export function MaskPane({ episode, position, masks }: Props) {
  const { data, problem } = useLoaded<Mask | null>(
    () => (masks ? backend.mask(episode.key) : Promise.resolve(null)),
    [episode.key, masks],
    episode.key,
  )
  if (problem) return <Wait problem={problem} />
  if (!masks) return <RolesOnly episode={episode} position={position} />
  if (!data) return <Wait />
  const here = partOf(data, episode, position)
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
      <Marked at={here}>
        {data.parts.map(([text, kind, tokens], index) =>
          kind === 'read' ? (
            <span key={index}>{text}</span>
          ) : (
            <mark key={index} class={kind} title={`${count(tokens)} tokens`} aria-current={index === here ? 'step' : undefined}>
              {text}
            </mark>
          ),
        )}
      </Marked>
    </div>
  )
}

/** The text with its marks, scrolled to the one of the current step. */
function Marked({ at, children }: { at: number; children: ComponentChildren }) {
  const box = useRef<HTMLPreElement>(null)
  useEffect(() => {
    const mark = box.current?.querySelector<HTMLElement>('[aria-current]')
    if (mark && box.current) box.current.scrollTop = mark.offsetTop - box.current.clientHeight / 4
  }, [at])
  return (
    <pre class="mask" ref={box} tabIndex={0} role="region" aria-label="What trains">
      {children}
    </pre>
  )
}

/** The part that holds the step's message: templates render each message of the assistant as one part; -1 where this one does not. */
function partOf(mask: Mask, episode: Episode, position: number): number {
  const spoken = episode.messages.flatMap((message, index) => (message.role === 'assistant' ? [index] : []))
  const parts = mask.parts.flatMap(([, kind], index) => (kind === 'read' ? [] : [index]))
  if (parts.length !== spoken.length) return -1
  return parts[spoken.indexOf(episode.steps[position]?.message_index ?? -1)] ?? -1
}

/** Without a tokenizer, only whole messages can be marked. */
function RolesOnly({ episode, position }: { episode: Episode; position: number }) {
  const here = episode.steps[position]?.message_index ?? -1
  return (
    <div class="mask-pane">
      <p class="note">
        The messages of the assistant train. Start with --model FOLDER to see each token, as the model&rsquo;s template renders it.
      </p>
      <Marked at={here}>
        {episode.messages.map((message, index) => {
          const calls = message.calls.map((call) => `\n${call.name}(${JSON.stringify(call.arguments)})`).join('')
          const text = `${message.content}${calls}`
          return message.role === 'assistant' ? (
            <span key={index}>
              <mark class="trained" aria-current={index === here ? 'step' : undefined}>
                {text}
              </mark>
              {'\n\n'}
            </span>
          ) : (
            <span key={index}>
              {message.role}: {text}
              {'\n\n'}
            </span>
          )
        })}
      </Marked>
    </div>
  )
}
