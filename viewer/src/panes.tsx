/** What stands beside the steps: code and debugger, the growing diff, the pack, the messages, the facts. */

import { useEffect, useMemo, useRef } from 'preact/hooks'
import { format } from './address'
import { backend } from './backend'
import { codeAt, runsOf, type CodeState } from './code'
import { count, moment, money, percent, UNKNOWN } from './format'
import { Empty, Pieces, useLoaded, Wait } from './parts'
import { CallLine } from './step'
import { diffPieces, pythonLines } from './text'
import type { Episode, Frame, Mask, Message } from './types'

interface Props {
  episode: Episode
  position: number
  onStep: (position: number) => void
}

export function CodePane({ episode, position }: Props) {
  const state = useMemo(() => codeAt(episode.steps, position), [episode, position])
  if (!state.path && !state.breakpoints.length) {
    return <Empty>No code has been looked at up to this step.</Empty>
  }
  return (
    <div class="code-pane">
      {state.path && <Source state={state} path={state.path} />}
      <Debugger state={state} />
    </div>
  )
}

function Source({ state, path }: { state: CodeState; path: string }) {
  const box = useRef<HTMLDivElement>(null)
  const file = state.files.get(path)
  const stops = new Set(state.breakpoints.filter((one) => one.path === path && one.enabled !== false).map((one) => one.line))
  const runs = useMemo(
    () => runsOf(file ?? new Map()).map((run) => ({ start: run.start, lines: pythonLines(run.lines.join('\n')) })),
    [state],
  )
  useEffect(() => {
    const aim = box.current?.querySelector<HTMLElement>('.now') ?? box.current?.querySelector<HTMLElement>('.fresh')
    if (aim && box.current) box.current.scrollTop = aim.offsetTop - box.current.clientHeight / 3
  }, [state])
  return (
    <figure class="source">
      <figcaption>
        {path}
        {state.current !== null && <span class="note"> stopped at line {state.current}</span>}
      </figcaption>
      <div class="lines" ref={box} tabIndex={0} role="region" aria-label={`What is known of ${path}`}>
        {runs.map((run, part) => (
          <div key={run.start} class="run">
            {part > 0 && <div class="gap">not seen yet</div>}
            {run.lines.map((pieces, index) => {
              const number = run.start + index
              const now = number === state.current
              return (
                <div
                  key={number}
                  class={`code-line${now ? ' now' : ''}${state.fresh.has(number) ? ' fresh' : ''}${stops.has(number) ? ' stop' : ''}`}
                  aria-current={now ? 'true' : undefined}
                >
                  <span class="gutter" aria-label={stops.has(number) ? 'breakpoint' : undefined}>
                    {stops.has(number) ? '●' : now ? '▶' : ''}
                  </span>
                  <span class="no">{number}</span>
                  <code>
                    <Pieces pieces={pieces} />
                    {'\n'}
                  </code>
                </div>
              )
            })}
          </div>
        ))}
      </div>
    </figure>
  )
}

function Debugger({ state }: { state: CodeState }) {
  return (
    <div class="debugger">
      <section>
        <h3>Breakpoints</h3>
        {state.breakpoints.length === 0 && <p class="note">none</p>}
        <ul>
          {state.breakpoints.map((one, index) => (
            <li key={index}>
              <span class="dot" aria-hidden="true">
                ●
              </span>{' '}
              {one.path}:{one.line}
              {one.condition ? ` if ${one.condition}` : ''}
              {one.hits ? <small> hit {count(one.hits)}×</small> : null}
            </li>
          ))}
        </ul>
      </section>
      <section>
        <h3>Frames</h3>
        {state.frames.length === 0 && <p class="note">the program is not stopped</p>}
        <ol class="frames">
          {[...state.frames].reverse().map((frame, index) => (
            <FrameLine key={index} frame={frame} open={state.frames.length - 1 - index === (state.frame ?? state.frames.length - 1)} />
          ))}
        </ol>
      </section>
    </div>
  )
}

function FrameLine({ frame, open }: { frame: Frame; open: boolean }) {
  const head = (
    <>
      <b>{frame.function}</b>{' '}
      <span class="note">
        {frame.path}:{frame.line}
      </span>
    </>
  )
  return (
    <li class={open ? 'here' : ''}>
      {head}
      {frame.locals.length > 0 && (
        <dl class="locals">
          {frame.locals.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      )}
    </li>
  )
}

export function DiffPane({ episode, position, onStep }: Props) {
  const state = useMemo(() => codeAt(episode.steps, position), [episode, position])
  const last = position >= episode.steps.length - 1
  return (
    <div class="diff-pane">
      {state.edits.length === 0 && <Empty>Nothing has been changed up to this step.</Empty>}
      {state.edits.map((edit, index) => (
        <figure key={index} class={`diff ${edit.step === episode.steps[position]?.index ? 'newest' : ''}`}>
          <figcaption>
            <button class="plain" onClick={() => onStep(positionOf(episode, edit.step))}>
              Step {edit.step}
            </button>{' '}
            {edit.path}
          </figcaption>
          <Diff text={edit.diff} />
        </figure>
      ))}
      {last && episode.patch && (
        <figure class="diff">
          <figcaption>The patch that is left</figcaption>
          <Diff text={episode.patch} />
        </figure>
      )}
    </div>
  )
}

export function Diff({ text }: { text: string }) {
  return (
    <pre class="patch">
      <Pieces pieces={diffPieces(text.trimEnd())} />
    </pre>
  )
}

export function PackPane({ episode, onStep }: Props) {
  const { pack, gold } = episode
  return (
    <div class="pack-pane">
      <div class="pack">
        <h3>What was handed over</h3>
        {pack === null ? (
          <Empty>This episode handed over no pack.</Empty>
        ) : (
          <>
            {pack.hypothesis && <p class="hypothesis">{pack.hypothesis}</p>}
            <h4>Locations</h4>
            <ol class="locations">
              {pack.locations.map((place, index) => (
                <li key={index} class={place.hit === null ? '' : place.hit ? 'good' : 'bad'}>
                  <span class="sign">{place.hit === null ? '·' : place.hit ? '✓ hit' : '✗ miss'}</span>{' '}
                  <code>
                    {place.path}:{place.start}
                    {place.end !== place.start ? `–${place.end}` : ''}
                  </code>{' '}
                  {place.symbol} <span class="note">{place.why}</span>
                </li>
              ))}
            </ol>
            {pack.missed.length > 0 && (
              <p class="bad">
                Not named: {pack.missed.slice(0, 12).map((one) => `${one.path}:${one.line}`).join(', ')}
                {pack.missed.length > 12 ? ` and ${pack.missed.length - 12} more` : ''}
              </p>
            )}
            <h4>Findings</h4>
            <ol class="findings">
              {pack.findings.map((finding, index) => (
                <li key={index} class={finding.grounded ? 'good' : 'bad'}>
                  <span class="sign">{finding.grounded ? '✓ grounded' : '✗ not grounded'}</span> {finding.claim}
                  <blockquote>{finding.quote}</blockquote>
                  {finding.known ? (
                    <button class="plain" onClick={() => onStep(positionOf(episode, finding.step))}>
                      Step {finding.step}
                    </button>
                  ) : (
                    <span class="note">There is no step {finding.step}.</span>
                  )}
                </li>
              ))}
            </ol>
            {pack.ruled_out.length > 0 && (
              <>
                <h4>Ruled out</h4>
                <ul>
                  {pack.ruled_out.map((item, index) => (
                    <li key={index}>
                      {item.what} <span class="note">{item.why}</span>
                    </li>
                  ))}
                </ul>
              </>
            )}
            {pack.failing_frame && (
              <p>
                Fails in <b>{pack.failing_frame.function}</b>{' '}
                <code>
                  {pack.failing_frame.path}:{pack.failing_frame.line}
                </code>
              </p>
            )}
          </>
        )}
      </div>
      <div class="gold">
        <h3>The gold patch</h3>
        {gold === null ? <Empty>It is not known here: name the task source with --tasks.</Empty> : <Diff text={gold} />}
        {episode.patch && (
          <>
            <h3>This episode&rsquo;s patch</h3>
            <Diff text={episode.patch} />
          </>
        )}
      </div>
      <Solver episode={episode} />
    </div>
  )
}

/** What the solver made of this pack, and of the others that it was given on the task. */
function Solver({ episode }: { episode: Episode }) {
  const { evaluated } = episode
  if (!evaluated) return null
  const scores = Object.entries(evaluated.scores).filter(([, value]) => value !== null)
  return (
    <div class="solver">
      <h3>What the solver did with it</h3>
      {evaluated.solver.length === 0 && <Empty>No solver was measured on this task.</Empty>}
      <ul>
        {evaluated.solver.map((one) => (
          <li key={one.arm} class={one.arm === evaluated.arm ? 'own' : ''}>
            <span class={one.solved === 1 ? 'good' : 'bad'}>{one.solved === 1 ? '✓ solved' : '✗ not solved'}</span> {one.title}
            {one.arm === evaluated.arm ? ' (this pack)' : ''}
          </li>
        ))}
      </ul>
      {scores.length > 0 && (
        <dl class="facts">
          {scores.map(([name, value]) => (
            <div key={name}>
              <dt>{name.replaceAll('_', ' ')}</dt>
              <dd>{Math.round((value ?? 0) * 1000) / 1000}</dd>
            </div>
          ))}
        </dl>
      )}
      <a href={format('evaluation', [evaluated.evaluation])}>The evaluation</a>
    </div>
  )
}

export function MessagesPane({ episode, position }: Props) {
  const step = episode.steps[position]
  const until = step ? step.message_index : episode.messages.length
  const shown = episode.messages.slice(0, until)
  return (
    <div class="messages-pane">
      <p class="note">
        {episode.exact
          ? `What the model got in this turn: ${shown.length} messages, ${episode.tools.length} tools.`
          : 'Prompts are not in the journal of an episode in flight; this is what was said since.'}
      </p>
      {episode.tools.length > 0 && (
        <details>
          <summary>Tools</summary>
          <pre>{JSON.stringify(episode.tools, null, 2)}</pre>
        </details>
      )}
      {shown.map((message, index) => (
        <MessageBox key={index} message={message} leftOut={step !== undefined && index < step.elided} />
      ))}
      {step && episode.messages[until] && (
        <>
          <p class="note">And this is what it answered:</p>
          <MessageBox message={episode.messages[until]} leftOut={false} />
        </>
      )}
    </div>
  )
}

function MessageBox({ message, leftOut }: { message: Message; leftOut: boolean }) {
  const content = leftOut ? (message.left_out ?? message.content) : message.content
  return (
    <section class={`message ${message.role}`}>
      <h4>
        {message.role}
        {message.name ? ` ${message.name}` : ''}
      </h4>
      {message.reasoning && <pre class="note">{message.reasoning}</pre>}
      <pre>{content}</pre>
      {message.calls.map((call, index) => (
        <CallLine key={index} call={call} />
      ))}
    </section>
  )
}

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
          <mark class="masked">said, but masked</mark>
        </li>
        <li>only read</li>
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
        'answer tokens': count(episode.usage.completion_tokens),
        cost: money(episode.usage.cost_usd),
      },
    ],
    ['Scores', Object.fromEntries(episode.scores.map((score) => [score.name, `${score.value ?? 'unscored'} ${score.explanation}`]))],
    ['Made with', { ...episode.provenance, created_at: moment(String(episode.provenance['created_at'] ?? '')) }],
  ]
  return (
    <div class="facts-pane">
      {groups.map(([title, facts]) => (
        <section key={title}>
          <h3>{title}</h3>
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
      {episode.errors.length > 0 && (
        <section>
          <h3>Errors</h3>
          <ul>
            {episode.errors.map((error, index) => (
              <li key={index}>{error}</li>
            ))}
          </ul>
        </section>
      )}
      {raw && episode.kind === 'run' && !episode.live && (
        <p>
          <a href={raw} download>
            The stored JSON
          </a>
        </p>
      )}
    </div>
  )
}

export function positionOf(episode: Episode, index: number): number {
  const position = episode.steps.findIndex((step) => step.index === index)
  return Math.max(0, position)
}
