/** Which step is shown. The address counts steps from 1, positions count from 0. */

import { changed, go, parse, type Address } from '../address'

export function usePosition(address: Address, steps: number): [number, (position: number) => void] {
  return [
    positionIn(address, steps),
    (next) => go(changed(parse(location.hash), { step: Math.min(Math.max(0, next), Math.max(0, steps - 1)) + 1 }), true),
  ]
}

function positionIn(address: Address, steps: number): number {
  const asked = Number(address.params.get('step') ?? 1) - 1
  return Math.min(Math.max(0, Number.isInteger(asked) ? asked : 0), Math.max(0, steps - 1))
}

/** The position that a key leads to. Reads the address, as the screen lags behind when keys come quickly. */
export function keyedPosition(key: string, steps: number): number | null {
  const now = positionIn(parse(location.hash), steps)
  if (['ArrowRight', 'l', 'j'].includes(key)) return now + 1
  if (['ArrowLeft', 'h', 'k'].includes(key)) return now - 1
  if (key === 'Home') return 0
  return key === 'End' ? steps - 1 : null
}
