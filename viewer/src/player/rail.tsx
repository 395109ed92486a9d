/** All steps in a row, and the buttons to the previous and the next one. */

import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { count, seconds } from '../format'
import type { Step } from '../types'

interface RailProps {
  steps: Step[]
  position: number
  onStep: (position: number) => void
  label?: string
  /** By the index of a step: how many other decisions were tried there. */
  others?: Map<number, number>
}

/** All steps as a row of buttons; below each, its time and its tokens. */
export function Rail({ steps, position, onStep, label = 'Steps', others }: RailProps) {
  const box = useRef<HTMLOListElement>(null)
  const longest = Math.max(...steps.map((step) => step.seconds ?? 0), 1e-9)
  const most = Math.max(...steps.map((step) => step.prompt_tokens + step.completion_tokens), 1)
  useEffect(() => {
    const here = box.current?.children[position] as HTMLElement | undefined
    if (here && box.current) {
      box.current.scrollLeft = Math.max(0, here.offsetLeft - box.current.clientWidth / 2)
    }
  }, [position])
  return (
    <ol class="rail" ref={box} aria-label={label}>
      {steps.map((step, index) => {
        const kind = step.decision ?? step.stated ?? 'none'
        const tokens = step.prompt_tokens + step.completion_tokens
        const failed = step.observations.some((one) => one.failure) || step.calls.some((one) => one.error)
        const title = `Step ${step.index + 1}: ${kind}${step.seconds !== null ? `, ${seconds(step.seconds)}` : ''}${tokens ? `, ${count(tokens)} tokens` : ''}${failed ? ', failed' : ''}${others?.has(step.index) ? `, ${others.get(step.index)} others tried` : ''}`
        return (
          <li key={index}>
            <button
              class={`b-${kind}${index === position ? ' here' : ''}`}
              aria-current={index === position ? 'step' : undefined}
              aria-label={title}
              title={title}
              tabIndex={index === position ? 0 : -1}
              onClick={() => onStep(index)}
            >
              {step.index + 1}
              {failed && <sup aria-hidden="true">✗</sup>}
              {others?.has(step.index) && <sup aria-hidden="true">+{others.get(step.index)}</sup>}
            </button>
            <span class="time" style={{ width: `${(100 * (step.seconds ?? 0)) / longest}%` }} />
            <span class="tokens" style={{ width: `${(100 * tokens) / most}%` }} />
          </li>
        )
      })}
    </ol>
  )
}

interface MoverProps {
  position: number
  steps: number
  index: number
  onStep: (position: number) => void
  children?: ComponentChildren
}

export function Mover({ position, steps, index, onStep, children }: MoverProps) {
  return (
    <div class="mover">
      <button onClick={() => onStep(position - 1)} disabled={position <= 0} aria-label="Previous step">
        ←
      </button>
      <h2>
        Step {index + 1} <small>of {steps}</small>
      </h2>
      <button onClick={() => onStep(position + 1)} disabled={position >= steps - 1} aria-label="Next step">
        →
      </button>
      {children}
    </div>
  )
}

/** The legend of the bars below the steps, where there are any. */
export function RailKey({ steps }: { steps: Step[] }) {
  const timed = steps.some((step) => step.seconds)
  const counted = steps.some((step) => step.prompt_tokens + step.completion_tokens > 0)
  if (!timed && !counted) return null
  return (
    <p class="rail-key note">
      {timed && (
        <span>
          <i class="time" />
          time
        </span>
      )}
      {counted && (
        <>
          <i class="tokens" />
          tokens
        </>
      )}
    </p>
  )
}
