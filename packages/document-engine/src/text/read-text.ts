import { type EngineInput, mediaTypeOf } from '../model/document.js'
import { extensionOf } from './text-kind.js'

/** Languages as fences name them, where the name is not the extension itself. */
const BY_EXTENSION: ReadonlyMap<string, string> = new Map<string, string>(
  Object.entries({
    bash: 'bash',
    bat: 'bat',
    c: 'c',
    cc: 'cpp',
    cjs: 'javascript',
    cpp: 'cpp',
    cs: 'csharp',
    css: 'css',
    diff: 'diff',
    go: 'go',
    graphql: 'graphql',
    h: 'c',
    hpp: 'cpp',
    ini: 'ini',
    java: 'java',
    js: 'javascript',
    json: 'json',
    jsonl: 'json',
    jsx: 'jsx',
    kt: 'kotlin',
    less: 'less',
    lua: 'lua',
    mjs: 'javascript',
    ndjson: 'json',
    patch: 'diff',
    php: 'php',
    pl: 'perl',
    proto: 'protobuf',
    ps1: 'powershell',
    py: 'python',
    r: 'r',
    rb: 'ruby',
    rs: 'rust',
    rss: 'xml',
    scala: 'scala',
    scss: 'scss',
    sh: 'bash',
    sql: 'sql',
    swift: 'swift',
    tex: 'latex',
    toml: 'toml',
    ts: 'typescript',
    tsx: 'tsx',
    xml: 'xml',
    yaml: 'yaml',
    yml: 'yaml',
  }),
)

const BY_TYPE: ReadonlyMap<string, string> = new Map<string, string>(
  Object.entries({
    'application/ecmascript': 'javascript',
    'application/javascript': 'javascript',
    'application/json': 'json',
    'application/sql': 'sql',
    'application/toml': 'toml',
    'application/x-javascript': 'javascript',
    'application/x-ndjson': 'json',
    'application/x-sh': 'bash',
    'application/x-yaml': 'yaml',
    'application/xml': 'xml',
    'application/yaml': 'yaml',
    'text/css': 'css',
    'text/javascript': 'javascript',
    'text/json': 'json',
    'text/x-c': 'c',
    'text/x-java-source': 'java',
    'text/x-python': 'python',
    'text/x-yaml': 'yaml',
    'text/xml': 'xml',
    'text/yaml': 'yaml',
  }),
)

/** The language of a text that is code or data by its claim, else by its extension; undefined for prose. */
export function languageOf({ contentType, name }: EngineInput): string | undefined {
  const type = mediaTypeOf(contentType)
  const suffix = /\+(json|xml|yaml)$/.exec(type)?.[1]
  return suffix ?? BY_TYPE.get(type) ?? BY_EXTENSION.get(extensionOf(name))
}
