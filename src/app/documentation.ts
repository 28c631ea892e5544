import type { IncomingMessage, ServerResponse } from 'node:http'
import type { INestApplication } from '@nestjs/common'
import { type OpenAPIObject, SwaggerModule } from '@nestjs/swagger'
import type { GatewayConfig } from '../config/settings.js'
import { UnknownPath } from '../core/errors.js'
import { isFromThisMachine } from '../server/client-address.js'
import { type OpenApiDocument, openApiDocument } from './openapi.js'

const OPENAPI_PATH = '/openapi.json'

/** Pages about the gateway that need no key, beside its endpoints. */
export const PAGES = ['/', '/docs', OPENAPI_PATH, '/health/ready']

type Settings = { readonly current: GatewayConfig }

/** `/` and `/docs` for people, `/openapi.json` for tools; the latter two for those whom `server.docs` shows them. */
export function serveDocumentation(application: INestApplication, settings: Settings): void {
  let made: { readonly publicUrl: string; readonly document: OpenApiDocument } | undefined
  const document = (): OpenApiDocument => {
    // Without `publicUrl`, `/` makes clients use the address that the document came from.
    const { publicUrl = '/' } = settings.current.server
    if (made?.publicUrl !== publicUrl) made = { publicUrl, document: openApiDocument(publicUrl) }
    return made.document
  }
  const isShown = (request: IncomingMessage): boolean => {
    const { docs } = settings.current.server
    return docs === 'public' || (docs === 'local' && isFromThisMachine(request))
  }
  const check = (request: IncomingMessage, _response: ServerResponse, next: (error?: Error) => void): void => {
    next(isShown(request) ? undefined : new UnknownPath())
  }
  application.use('/docs', check)
  application.use(OPENAPI_PATH, check)
  SwaggerModule.setup('docs', application, () => document() as OpenAPIObject, {
    jsonDocumentUrl: 'docs/openapi.json',
    yamlDocumentUrl: 'docs/openapi.yaml',
  })
  const server = application.getHttpAdapter()
  server.get(OPENAPI_PATH, (_request: IncomingMessage, response: ServerResponse) => {
    write(response, 'application/json', JSON.stringify(document()))
  })
  server.get('/', (request: IncomingMessage, response: ServerResponse) => {
    const accepted = request.headers.accept ?? ''
    const links = linksOf(isShown(request))
    response.setHeader('vary', 'accept')
    if (accepted.includes('text/html')) write(response, 'text/html', htmlPage(links))
    else write(response, 'text/plain', textPage(links))
  })
}

const NAME = 'Multi-Model Gateway'
const PURPOSE =
  'many AI models behind one address and one key. Base URL: this address with /v1 (Anthropic clients: without).'

type Link = readonly [title: string, path: string]

/** Documents are named to those who can read them. */
const linksOf = (showsDocuments: boolean): readonly Link[] => [
  ...(showsDocuments ? ([['Documentation', '/docs'] as const, ['OpenAPI', OPENAPI_PATH] as const] as const) : []),
  ['Status', '/health/ready'],
]

function write(response: ServerResponse, type: string, text: string): void {
  response.writeHead(200, {
    'content-type': type === 'application/json' ? type : `${type}; charset=utf-8`,
    'content-length': String(Buffer.byteLength(text)),
    'cache-control': 'no-store',
  })
  response.end(text)
}

/** Two lines for a terminal. */
const textPage = (links: readonly Link[]): string =>
  `${NAME}: ${PURPOSE}\n${links.map(([title, path]) => `${title}: ${path}`).join('   ')}\n`

/** The same for a browser. Nothing of the request stands in it. */
const htmlPage = (links: readonly Link[]): string =>
  `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${NAME}</title>
<style>body{font:1.1rem/1.6 system-ui,sans-serif;max-width:42rem;margin:4rem auto;padding:0 1rem;color-scheme:light dark}</style>
</head>
<body>
<h1>${NAME}</h1>
<p>${PURPOSE}</p>
<p>${links.map(([title, path]) => `<a href="${path}">${title}</a>`).join(' · ')}</p>
</body>
</html>
`
