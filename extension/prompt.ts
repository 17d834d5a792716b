/** What a prompt takes along: at most one message, after at most a short wait. */
import { within } from './background.ts'
import { contextMessage } from './context-message.ts'
import type { BeforeAgentStartEvent, BeforeAgentStartResult } from './host.ts'
import type { Link } from './link.ts'

/** How long a prompt waits for a connection that is being made; print mode starts and prompts at once. */
const WAIT_MS = 250
const PRINT_WAIT_MS = 1000
/** Room for the addon's own file work, so that nothing at all can hold a prompt for ever. */
const GRACE_MS = 1000

/** Only prompts of the user carry context: 1.6.0 fires the event for runs that extensions trigger, too. */
export const carriesContext = ({ messageType }: BeforeAgentStartEvent): boolean =>
  messageType === undefined || messageType === 'user'

/**
 * Takes what is pending and marks it as sent; undefined when nothing is. `isCurrent` is asked after the wait, because
 * the session may have been replaced or switched off meanwhile. Rejects with the addon's error.
 */
export async function takePending(
  link: Link,
  hasUI: boolean,
  isCurrent: () => boolean,
): Promise<BeforeAgentStartResult | undefined> {
  const end = performance.now() + (hasUI ? WAIT_MS : PRINT_WAIT_MS)
  const left = () => Math.max(0, Math.ceil(end - performance.now()))
  await within(link.ready, left())
  const { connection } = link
  if (!connection) return undefined
  const waitMs = left()
  const prepared = await within(connection.prepareContext({ waitMs }), waitMs + GRACE_MS)
  if (!prepared || !isCurrent()) return undefined
  connection.markInjected(prepared)
  return contextMessage(prepared)
}
