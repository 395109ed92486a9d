/** The debugger at a step: breakpoints, frames and values. */

import type { CodeState } from '../code'
import { count } from '../format'
import type { Frame } from '../types'

/** Why there are no frames, by what the program does. */
const NO_FRAMES: Record<string, string> = {
  stopped: 'The frames were not recorded.',
  exited: 'The program has ended.',
  ready: 'The program has not started.',
}

export function Debugger({ state }: { state: CodeState }) {
  if (state.program === null && !state.breakpoints.length) {
    return <p class="note">No debugger output up to this step.</p>
  }
  return (
    <div class="debugger">
      <section>
        <h3>Breakpoints</h3>
        {state.breakpoints.length === 0 && <p class="note">No breakpoints.</p>}
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
        {state.frames.length === 0 && <p class="note">{NO_FRAMES[state.program ?? ''] ?? 'The program is not running.'}</p>}
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
