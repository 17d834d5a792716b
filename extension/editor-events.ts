/** What the extension does when the editor asks for something. */
import type { DiagnosticFix } from '../index.js'
import type { Ui } from './host.ts'

/** A notice of hundreds of ranges would fill the screen. */
const SHOWN = 5

/** One space after the last, no newline. The notice also makes pi draw the pasted text, which pasting does not. */
export function pasteMentions(ui: Ui, mentions: readonly string[]): void {
  if (mentions.length === 0) return
  const text = mentions.join(' ')
  ui.pasteToEditor(`${text} `)
  const more = mentions.length > SHOWN ? ` and ${mentions.length - SHOWN} more` : ''
  ui.notify(`Attached ${mentions.slice(0, SHOWN).join(' ')}${more}`, 'info')
}

/** Acting on diagnostics is a later part of this extension; until then `/ide status` says that one was left alone. */
export function ignoreDiagnostic(request: DiagnosticFix): string {
  const wish = request.action === 'fix' ? 'fix a diagnostic' : 'send a diagnostic'
  return `The editor asked to ${wish} in ${request.filePath}; this version does not act on diagnostics yet.`
}
