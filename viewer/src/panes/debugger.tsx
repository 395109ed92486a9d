/** Breakpoints, frames and values at a step. */

import type { CodeState } from '../code'
import { count } from '../format'
import type { Frame } from '../types'

export function Debugger({ state }: { state: CodeState }) {
  if (!state.breakpoints.length && !state.frames.length) {
    return <p class="note">No debugger output up to this step.</p>
  }
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
        {state.frames.length === 0 && <p class="note">no frames reported</p>}
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
