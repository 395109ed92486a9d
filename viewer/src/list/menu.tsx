/** A button that opens a panel below it; Escape and a click elsewhere close it. */

import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

export function Menu({ title, children }: { title: string; children: ComponentChildren }) {
  const box = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    const close = (event: Event) => {
      const escaped = event instanceof KeyboardEvent && event.key === 'Escape'
      const elsewhere = event.type === 'pointerdown' && !box.current?.contains(event.target as Node)
      if (!box.current?.open || !(escaped || elsewhere)) return
      box.current.open = false
      if (escaped) box.current.querySelector('summary')?.focus()
    }
    const events = ['pointerdown', 'keydown']
    for (const name of events) addEventListener(name, close)
    return () => {
      for (const name of events) removeEventListener(name, close)
    }
  }, [])
  return (
    <details class="menu" ref={box}>
      <summary>{title}</summary>
      <div class="menu-body">{children}</div>
    </details>
  )
}
