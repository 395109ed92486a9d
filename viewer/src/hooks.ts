/** What components share: answers on their way, keys, the width of the screen. */

import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

/** What a promise brings; the last thing stays while the next one is on its way, unless it is about another subject. */
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

/** Listens to keys while nothing is being typed. The handler says whether it took the key. */
export function useKeys(handler: (key: string, event: KeyboardEvent) => boolean): void {
  const latest = useRef(handler)
  latest.current = handler
  // Before the screen is drawn: a key that follows at once finds its listener.
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
