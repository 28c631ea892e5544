import type { INestApplication } from '@nestjs/common'
import { DocumentBuilder, type OpenAPIObject, SwaggerModule } from '@nestjs/swagger'

/** Interface version of the specification's audio part; the document's own version. */
const INTERFACE_VERSION = '2026-04'

/** The OpenAPI 3.1 document, made from the DTOs that also check the requests. */
export function openApiDocument(application: INestApplication): OpenAPIObject {
  const configuration = new DocumentBuilder()
    .setOpenAPIVersion('3.1.0')
    .setTitle('Multi-Model Gateway')
    .setDescription('Many AI upstreams behind one address and one key.')
    .setVersion(INTERFACE_VERSION)
    .addBearerAuth()
    .addApiKey({ type: 'apiKey', name: 'x-api-key', in: 'header' }, 'x-api-key')
    .build()
  return SwaggerModule.createDocument(application, configuration)
}

/** `/docs` for people, `/docs/openapi.json` for tools. */
export function serveDocumentation(application: INestApplication): void {
  SwaggerModule.setup('docs', application, () => openApiDocument(application), {
    jsonDocumentUrl: 'docs/openapi.json',
    yamlDocumentUrl: 'docs/openapi.yaml',
  })
}
