/** Hooks and helpers of all components: loaded data, keys, the width of the screen, what the browser stores. */

import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

/** The result of a promise. While the next one is pending, the last result stays, unless its subject is another one. */
export function useLoaded<T>(load: () => Promise<T>, inputs: unknown[], subject = ''): { data: T | null; problem: string | null } {
  const [state, setState] = useState<{ data: T | null; problem: string | null; subject: string }>({
    data: null,
    problem: null,
    subject,
  })
  const turn = useRef(0)
  useEffect(() => {
    const mine = ++turn.current
    load().then(
      (data) => mine === turn.current && setState({ data, problem: null, subject }),
      (error: unknown) =>
        mine === turn.current && setState({ data: null, problem: error instanceof Error ? error.message : String(error), subject }),
    )
  }, inputs)
  return state.subject === subject ? state : { data: null, problem: null }
}

/** Listens to keys while nothing is being typed. The handler returns whether it used the key. */
export function useKeys(handler: (key: string, event: KeyboardEvent) => boolean): void {
  const latest = useRef(handler)
  latest.current = handler
  // A layout effect runs before the screen is drawn, so that no key is missed.
  useLayoutEffect(() => {
    const listen = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement
      const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)
      if (typing || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return
      if (document.querySelector('dialog[open]')) return
      if (latest.current(event.key, event)) event.preventDefault()
    }
    addEventListener('keydown', listen)
    return () => removeEventListener('keydown', listen)
  }, [])
}

export function useWide(query: string): boolean {
  const [wide, setWide] = useState(() => matchMedia(query).matches)
  useEffect(() => {
    const media = matchMedia(query)
    const update = () => setWide(media.matches)
    media.addEventListener('change', update)
    return () => media.removeEventListener('change', update)
  }, [query])
  return wide
}

/** Something that this browser stores; null where there is nothing, or where a page opened from a disk may not read it. */
export function kept(key: string): string | null {
  try {
    return localStorage.getItem(key)
  } catch {
    return null
  }
}

/** Stores something in this browser. Returns whether it could. */
export function keep(key: string, value: string): boolean {
  try {
    localStorage.setItem(key, value)
    return true
  } catch {
    return false
  }
}
