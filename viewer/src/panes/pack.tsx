/** The seeker's report next to the gold patch, and what the solver did with it. */

import { Diff, Empty, episodeAddress, linesOf, PythonCode } from '../parts'
import type { Episode, Finding, Pack, PackLocation } from '../types'
import { positionOf, type PaneProps } from './pane'
import { Solver } from './solver'

export function PackPane({ episode, onStep }: PaneProps) {
  const { pack, gold, evaluated } = episode
  return (
    <div class="pack-pane">
      <div class="pack">
        <h3>Report</h3>
        {pack ? (
          <PackFacts episode={episode} pack={pack} onStep={onStep} />
        ) : evaluated?.given ? (
          <p>
            This is a solver episode. It started from <a href={`${episodeAddress({ key: evaluated.given })}?tab=pack`}>this report</a>.
          </p>
        ) : (
          <Empty>This episode made no report.</Empty>
        )}
      </div>
      <div class="gold">
        <h3>Gold patch</h3>
        {gold === null ? <Empty>Unknown here: name the task source with --tasks.</Empty> : <Diff text={gold} />}
        {episode.patch && !evaluated && (
          <>
            <h3>This episode&rsquo;s patch</h3>
            <Diff text={episode.patch} />
          </>
        )}
      </div>
      {evaluated && <Solver evaluated={evaluated} pack={pack} gold={gold} />}
    </div>
  )
}

function PackFacts({ episode, pack, onStep }: { episode: Episode; pack: Pack; onStep: (position: number) => void }) {
  const edited = episode.evaluated?.answers.find((one) => one.mine)?.edited ?? null
  return (
    <>
      {pack.hypothesis ? <p class="hypothesis">{pack.hypothesis}</p> : <p class="note">No hypothesis was reported.</p>}
      {pack.reproduction && (
        <>
          <h4>
            Reproduction {pack.reproduction.path && <code>{pack.reproduction.path}</code>}
          </h4>
          <PythonCode text={pack.reproduction.code} />
        </>
      )}
      <h4>Locations</h4>
      {pack.locations.length === 0 && <p class="note">No locations were reported.</p>}
      <ol class="locations">
        {pack.locations.map((one, index) => (
          <LocationLine key={index} one={one} edited={edited?.[index] ?? false} />
        ))}
      </ol>
      {pack.missed.length > 0 && (
        <p class="bad">
          Not named: {pack.missed.slice(0, 12).map((one) => linesOf(one.path, one.line)).join(', ')}
          {pack.missed.length > 12 ? ` and ${pack.missed.length - 12} more` : ''}
        </p>
      )}
      <h4>Findings</h4>
      {pack.findings.length === 0 && <p class="note">No findings were reported.</p>}
      <ol class="findings">
        {pack.findings.map((finding, index) => (
          <FindingLine key={index} finding={finding} onOpen={() => onStep(positionOf(episode, finding.step))} />
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
          Fails in <b>{pack.failing_frame.function}</b> <code>{linesOf(pack.failing_frame.path, pack.failing_frame.line)}</code>
        </p>
      )}
    </>
  )
}

function LocationLine({ one, edited }: { one: PackLocation; edited: boolean }) {
  return (
    <li class={one.hit === null ? '' : one.hit ? 'good' : 'bad'}>
      <span class="sign">{one.hit === null ? '·' : one.hit ? '✓ hit' : '✗ miss'}</span>{' '}
      <code>{linesOf(one.path, one.start, one.end)}</code> {one.symbol} {edited && <span class="edited">✎ changed by the solver</span>}{' '}
      <span class="note">{one.why}</span>
    </li>
  )
}

/** What a finding is worth: a new run decides, and where there was none, whether the quote was seen. */
export function markOf({ check, quoted }: Pick<Finding, 'check' | 'quoted'>): { kind: '' | 'good' | 'bad'; sign: string } {
  if (check?.status === 'contradicted') return { kind: 'bad', sign: '✗ contradicted' }
  if (!quoted) return { kind: 'bad', sign: '✗ not quoted' }
  if (check?.status === 'confirmed')
    return check.telling ? { kind: 'good', sign: '✓ confirmed' } : { kind: '', sign: '· confirmed, tells nothing' }
  return { kind: '', sign: '· quoted, unchecked' }
}

function probeOf({ probe }: Finding): string {
  if (probe?.kind === 'whatif') return probe.effect ?? ''
  return probe?.expression ? `${probe.expression} = ${probe.value}` : ''
}

function FindingLine({ finding, onOpen }: { finding: Finding; onOpen: () => void }) {
  const { kind, sign } = markOf(finding)
  return (
    <li class={kind}>
      <span class="sign">{sign}</span> {finding.claim}
      <blockquote>{finding.quote}</blockquote>
      {finding.place && (
        <p class="note">
          Probe: <code>{finding.place}</code> {probeOf(finding)}
        </p>
      )}
      {finding.check?.note && <p class="note">{finding.check.note}</p>}
      {finding.known ? (
        <button class="plain" onClick={onOpen}>
          Step {finding.step + 1}
        </button>
      ) : (
        <span class="note">There is no step {finding.step + 1}.</span>
      )}
    </li>
  )
}
