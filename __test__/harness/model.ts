import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

interface ChatMessage {
  role: string
  content: string | { type: string; text?: string }[] | null
}

interface ChatRequest {
  model: string
  stream?: boolean
  messages: ChatMessage[]
}

/** One recorded request of pi to its model, with every content flattened to text. */
export interface ModelRequest {
  messages: { role: string; text: string }[]
}

const textOf = (content: ChatMessage['content']) =>
  typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join('')

/**
 * An OpenAI-compatible chat model on 127.0.0.1 that records what it is asked and answers `REPLY-<n>`,
 * n counting its requests from 1, so that a screen can be searched for one particular answer.
 */
export class FakeModel {
  readonly requests: ModelRequest[] = []
  #server = createServer(
    (request, response) => void this.#answer(request, response).catch(() => response.destroy()),
  )
  #chunkDelayMs: number

  private constructor(chunkDelayMs: number) {
    this.#chunkDelayMs = chunkDelayMs
  }

  static async start({ chunkDelayMs = 0 } = {}): Promise<FakeModel> {
    const model = new FakeModel(chunkDelayMs)
    await new Promise<void>((resolve) => model.#server.listen(0, '127.0.0.1', resolve))
    return model
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`
  }

  /** The latest request; throws when there was none. */
  get last(): ModelRequest {
    const request = this.requests.at(-1)
    if (!request) throw new Error('the model was never asked')
    return request
  }

  close(): Promise<void> {
    this.#server.closeAllConnections()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }

  async #answer(request: IncomingMessage, response: ServerResponse) {
    if (request.method !== 'POST' || !request.url?.endsWith('/chat/completions')) {
      response.writeHead(request.url?.endsWith('/models') ? 200 : 404, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ object: 'list', data: [{ id: 'fake-model', object: 'model' }] }))
      return
    }
    let raw = ''
    for await (const chunk of request) raw += chunk
    const body = JSON.parse(raw) as ChatRequest
    this.requests.push({
      messages: body.messages.map(({ role, content }) => ({ role, text: textOf(content) })),
    })
    const reply = `REPLY-${this.requests.length}`
    const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
    const base = { id: reply, created: 0, model: body.model }
    if (!body.stream) {
      const choices = [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: reply } }]
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ ...base, object: 'chat.completion', usage, choices }))
      return
    }
    const send = (choice: object, rest: object = {}) =>
      response.write(
        `data: ${JSON.stringify({ ...base, object: 'chat.completion.chunk', choices: [{ index: 0, ...choice }], ...rest })}\n\n`,
      )
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
    send({ delta: { role: 'assistant', content: '' }, finish_reason: null })
    for (const content of reply.match(/.{1,4}/g) ?? []) {
      if (this.#chunkDelayMs > 0) await sleep(this.#chunkDelayMs)
      if (response.destroyed) return
      send({ delta: { content }, finish_reason: null })
    }
    send({ delta: {}, finish_reason: 'stop' }, { usage })
    response.end('data: [DONE]\n\n')
  }
}
