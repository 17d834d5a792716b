/** The message that carries the editor's context to the model, and how it looks in the transcript. */
import type { PreparedContext } from '../index.js'
import type { Truncate } from './fit.ts'
import type { BeforeAgentStartResult, CustomMessage, MessageRenderer, SessionEntry, Theme } from './host.ts'

export const CONTEXT_TYPE = 'pi-x-ide/context'

/**
 * The hash of what this session injected last, from the active branch: `/reload`, `/resume` and `/fork` go on from
 * there, and a new session, whose branch is empty, has injected nothing.
 */
export function lastInjectedHash(branch: readonly SessionEntry[]): string | undefined {
  for (let index = branch.length - 1; index >= 0; index -= 1) {
    const entry = branch[index]
    if (entry?.type !== 'custom_message' || entry.customType !== CONTEXT_TYPE) continue
    return text(fields(entry.details).hash)
  }
  return undefined
}

export function contextMessage(prepared: PreparedContext): BeforeAgentStartResult {
  const { customType, content, hash, source, filePath, displayPath, ranges, rangeLabels } = prepared
  const details = { hash, source, filePath, displayPath, ranges, rangeLabels }
  return { message: { customType, content, display: true, details } }
}

/** One line that names editor, file and lines; expanded, the block as the model got it below. */
export function createContextRenderer(look: {
  truncate: () => Truncate
  icon: () => string
}): MessageRenderer {
  return (message, { expanded }, theme) => ({
    render: (width) => {
      try {
        const truncate = look.truncate()
        const line = (color: Parameters<Theme['fg']>[0], plain: string): string => {
          const cut = truncate(` ${plain}`, Math.max(0, Math.floor(width)))
          return cut === '' ? '' : theme.fg(color, cut)
        }
        const heading = line('customMessageLabel', `${look.icon()} ${summary(message)}`)
        if (!expanded) return [heading]
        return [heading, ...contentLines(message).map((plain) => line('customMessageText', plain))]
      } catch {
        return []
      }
    },
    invalidate: () => {},
  })
}

/** From the details; a message of another version, or of somebody else, may lack any of them. */
function summary(message: CustomMessage): string {
  const details = fields(message.details)
  const path = text(details.displayPath) ?? text(details.filePath)
  if (path === undefined)
    return contentLines(message).find((line) => !/^(?:#|\s*$)/.test(line)) ?? 'IDE context'
  const source = text(details.source)
  const labels = Array.isArray(details.rangeLabels) ? details.rangeLabels.filter((label) => text(label)) : []
  return [source && `${source} ·`, path, labels.join(', ')].filter(Boolean).join(' ')
}

function contentLines({ content }: CustomMessage): string[] {
  if (typeof content === 'string') return content.split('\n')
  if (!Array.isArray(content)) return []
  return content.flatMap((part) => text(fields(part).text)?.split('\n') ?? [])
}

const fields = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}

const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined
