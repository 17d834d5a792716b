/** What the extension does when the editor asks for something. */
import type { DiagnosticFix } from '../index.js'
import type { Ui } from './host.ts'

/** One space after the last, no newline. The notice also makes pi draw the pasted text, which pasting does not. */
export function pasteMentions(ui: Ui, mentions: readonly string[]): void {
  if (mentions.length === 0) return
  const text = mentions.join(' ')
  ui.pasteToEditor(`${text} `)
  ui.notify(`Attached ${text}`, 'info')
}

/** Acting on diagnostics is a later part of this extension; until then `/ide status` says that one was left alone. */
export function ignoreDiagnostic(request: DiagnosticFix): string {
  const wish = request.action === 'fix' ? 'fix a diagnostic' : 'send a diagnostic'
  return `The editor asked to ${wish} in ${request.filePath}; this version does not act on diagnostics yet.`
}
