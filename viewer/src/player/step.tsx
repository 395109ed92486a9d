/** One turn: the previous observations, the decision and its reason, the calls and their results. */

import { useState } from 'preact/hooks'
import { count, money, seconds } from '../format'
import { CallLine } from '../call'
import { Decision, Pieces } from '../parts'
import { findMarks, piecesOf, type Mark } from '../text'
import type { Episode, Observation, Step } from '../types'
import { TriedHere } from './tried'

const FOLD = 6_000
const MOST_UNSEEN = 12

export function StepCard({ episode, position, search = '' }: { episode: Episode; position: number; search?: string }) {
  const step = episode.steps[position]
  if (!step) return <p class="empty">This episode has no step {position + 1}.</p>
  return (
    <article class="step" aria-label={`Step ${step.index + 1}`}>
      <Saw episode={episode} position={position} />
      <header>
        <Decision name={step.decision ?? step.stated} />
        {step.stated && step.decision && step.stated !== step.decision && <span class="note">stated: {step.stated}</span>}
        <Confidence value={step.confidence} />
        <Costs step={step} />
      </header>
      {step.reasoning && (
        <details class="reasoning">
          <summary>Reasoning</summary>
          <pre>{step.reasoning}</pre>
        </details>
      )}
      <p class="why">{step.rationale ?? <span class="note">No rationale.</span>}</p>
      <Unseen said={step.unseen.filter((one) => one.where !== 'edit')} title="✗ seen nowhere before" kind="bad" />
      {step.calls.map((call, index) => (
        <CallLine key={index} call={call} />
      ))}
      <Unseen said={step.unseen.filter((one) => one.where === 'edit')} title="new in the edit" kind="note" />
      {step.calls.length === 0 && <p class="note">No tool call.</p>}
      {step.observations.map((observation, index) => (
        <Answer key={`${position}-${index}`} observation={observation} marks={marksOf(episode, step, observation, search)} />
      ))}
      <TriedHere episode={episode} position={position} />
    </article>
  )
}

function marksOf(episode: Episode, step: Step, observation: Observation, search: string): Mark[] {
  const quotes = (episode.pack?.findings ?? [])
    .filter((finding) => finding.step === step.index)
    .map((finding) => ({ text: finding.quote, kind: 'quoted' }))
  const marks = findMarks(observation.text, quotes)
  const terms = (search.match(/"[^"]+"|\S+/g) ?? []).map((text) => ({ text: text.replaceAll('"', ''), kind: 'hit' }))
  const hits = findMarks(observation.text, terms, true)
  return [...marks, ...hits.filter((hit) => marks.every((mark) => hit.end <= mark.start || mark.end <= hit.start))].sort(
    (a, b) => a.start - b.start,
  )
}

function Saw({ episode, position }: { episode: Episode; position: number }) {
  const before = episode.steps[position - 1]
  const first = episode.messages.find((message) => message.role === 'user')
  const title = before ? `Seen before this step: step ${before.index + 1}` : 'Prompt'
  const texts = before ? before.observations : []
  if (!before && !first) return null
  return (
    <details class="saw" open={position === 0}>
      <summary>{title}</summary>
      {before ? (
        texts.map((one, index) => (
          <pre key={index} class="answer">
            <Pieces pieces={piecesOf(one.tool, one.text.slice(0, FOLD))} />
          </pre>
        ))
      ) : (
        <pre class="answer">{first?.content}</pre>
      )}
    </details>
  )
}

function Unseen({ said, title, kind }: { said: Step['unseen']; title: string; kind: string }) {
  if (!said.length) return null
  return (
    <p class={`unseen ${kind}`} title="The leak check: no earlier message contains it">
      {title}:{' '}
      {said.slice(0, MOST_UNSEEN).map((one, index) => (
        <span key={index}>
          <code>{one.text}</code> ({one.where === 'edit' ? one.kind : `${one.kind} in the ${one.where}`}){' '}
        </span>
      ))}
      {said.length > MOST_UNSEEN && `and ${said.length - MOST_UNSEEN} more`}
    </p>
  )
}

export function Confidence({ value }: { value: number | null }) {
  if (value === null) return null
  return (
    <span class="confidence" title="Confidence that the model stated">
      <meter min={0} max={1} value={value} aria-label="confidence" /> confidence {value.toFixed(2)}
    </span>
  )
}

function Costs({ step }: { step: Step }) {
  const tokens = step.prompt_tokens + step.completion_tokens
  return (
    <dl class="costs">
      {step.seconds !== null && (
        <div>
          <dt>time</dt>
          <dd>{seconds(step.seconds)}</dd>
        </div>
      )}
      {step.asking ? (
        <div>
          <dt>model time</dt>
          <dd>{seconds(step.asking)}</dd>
        </div>
      ) : null}
      {tokens > 0 && (
        <div>
          <dt>tokens</dt>
          <dd>
            {count(step.prompt_tokens)} in, {count(step.completion_tokens)} out
            {step.cached_tokens > 0 ? `, ${count(step.cached_tokens)} cached` : ''}
          </dd>
        </div>
      )}
      {step.cost !== null && (
        <div>
          <dt>cost</dt>
          <dd>{money(step.cost)}</dd>
        </div>
      )}
    </dl>
  )
}

function Answer({ observation, marks }: { observation: Observation; marks: Mark[] }) {
  const [whole, setWhole] = useState(false)
  const long = observation.text.length > FOLD
  const last = marks.at(-1)?.end ?? 0
  const shown = long && !whole ? observation.text.slice(0, Math.max(FOLD, Math.min(last + 200, 60_000))) : observation.text
  return (
    <div class={`came ${observation.failure ? 'failed' : ''}`}>
      <p class="came-head">
        <b>{observation.tool || 'answer'}</b>
        {observation.seconds ? <span> {seconds(observation.seconds)}</span> : null}
        {observation.failure && <span class="bad"> ✗ {observation.failure.kind.replaceAll('_', ' ')}</span>}
        {observation.truncated && <span class="note"> cut by the tool</span>}
      </p>
      <pre class="answer">
        {shown === '' && <span class="note">(no output)</span>}
        <Pieces pieces={piecesOf(observation.tool, shown)} marks={marks.filter((mark) => mark.end <= shown.length)} />
      </pre>
      {long && (
        <button class="plain" onClick={() => setWhole(!whole)}>
          {whole ? 'Show less' : `Show all ${count(observation.text.length)} characters`}
        </button>
      )}
    </div>
  )
}
