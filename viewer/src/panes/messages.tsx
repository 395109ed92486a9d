/** The exact messages that the model got in a turn, and its completion. */

import { CallLine } from '../call'
import type { Message } from '../types'
import type { PaneProps } from './pane'

export function MessagesPane({ episode, position }: PaneProps) {
  const step = episode.steps[position]
  const until = step ? step.message_index : episode.messages.length
  const shown = episode.messages.slice(0, until)
  return (
    <div class="messages-pane">
      <p class="note">
        {episode.exact
          ? `Input of this turn: ${shown.length} messages, ${episode.tools.length} tools.`
          : 'The journal of a running episode does not contain the prompt; these are the messages after it.'}
        {shown.some((message) => message.content.startsWith('[step 0]')) && ' The model counts from 0: its [step 0] is step 1 here.'}
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
          <p class="note">Completion:</p>
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
