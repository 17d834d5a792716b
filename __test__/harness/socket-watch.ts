import { establishedSockets, type Socket, socketInodes } from './processes.ts'

const EVERY_MS = 10

interface Life {
  firstSeen: number
  lastSeen: number
}

/**
 * Looks all the time at the sockets that a process has opened since this began, so that one knows when each came and
 * went (Linux). What a process says of itself comes too late for that, and too rarely.
 */
export class SocketWatch {
  /** The most that were established at one moment. */
  most = 0
  #pid: number
  #earlier: ReadonlySet<string>
  #lives = new Map<string, Life>()
  #timer: NodeJS.Timeout

  constructor(pid: number) {
    this.#pid = pid
    this.#earlier = new Set(socketInodes(pid))
    this.#timer = setInterval(() => this.#tick(), EVERY_MS)
  }

  /** The TCP connections among them that are established now; throws when the process is gone. */
  established(): Socket[] {
    return establishedSockets(this.#pid).filter(({ inode }) => !this.#earlier.has(inode))
  }

  /** When a socket was seen first and last, in milliseconds since the epoch. */
  lifeOf(inode: string): Life | undefined {
    return this.#lives.get(inode)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** Descriptors only: the kernel takes milliseconds to list the connections of a machine. */
  #tick() {
    try {
      const open = socketInodes(this.#pid).filter((inode) => !this.#earlier.has(inode))
      const lastSeen = Date.now()
      for (const inode of open)
        this.#lives.set(inode, { firstSeen: lastSeen, ...this.#lives.get(inode), lastSeen })
      this.most = Math.max(this.most, open.length > 1 ? this.established().length : open.length)
    } catch {
      this.stop() // the process has ended; whoever needs it alive finds that out
    }
  }
}
