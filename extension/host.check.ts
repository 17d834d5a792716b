/**
 * Proof, by the type checker alone, that one factory fits both real hosts. Run with
 * `tsc -p extension/tsconfig.hosts.json` when both are installed under `.hosts/`; nothing imports this file.
 */
import type { ExtensionFactory as NewFactory } from 'pi-host-new'
import type { ExtensionFactory as OldFactory } from 'pi-host-old'
import factory from './index.ts'

factory satisfies OldFactory
factory satisfies NewFactory
