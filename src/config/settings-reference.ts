import * as z from 'zod'
import { ENVIRONMENT_OVERRIDES } from './environment.js'

/** One setting as documents show it; `npm run documents` writes the tables of docs/operations.md from these. */
interface SettingReference {
  /** With `[]` for the items of a list: `auth.keys[].id`. */
  readonly path: string
  /** Allowed values, in Markdown. */
  readonly type: string
  readonly presence: 'required' | 'optional' | 'defaulted'
  readonly fallback?: unknown
  readonly meaning: string
  /** Secrets must not be written into the file. */
  readonly isSecret: boolean
}

/** Every setting below the sections of a configuration schema, in the order of its declaration. */
export function settingsOf(schema: z.core.$ZodType): SettingReference[] {
  const settings = new Map<string, SettingReference>()
  for (const setting of below(schema, '')) if (!settings.has(setting.path)) settings.set(setting.path, setting)
  return [...settings.values()]
}

function below(schema: z.core.$ZodType, path: string): SettingReference[] {
  const kernel = layersOf(schema).at(-1)
  if (kernel instanceof z.core.$ZodArray) return below(kernel._zod.def.element, `${path}[]`)
  if (kernel instanceof z.core.$ZodUnion) return kernel._zod.def.options.flatMap((variant) => below(variant, path))
  if (!(kernel instanceof z.core.$ZodObject)) return []
  return Object.entries(kernel._zod.def.shape).flatMap(([name, field]) => {
    const layers = layersOf(field)
    if (layers.some((layer) => metaOf(layer)['hidden'] === true)) return []
    const isSection = path === '' && layers.at(-1) instanceof z.core.$ZodObject
    const own = path === '' ? name : `${path}.${name}`
    return [...(isSection ? [] : [settingAt(own, layers)]), ...below(field, own)]
  })
}

function settingAt(path: string, layers: readonly z.core.$ZodType[]): SettingReference {
  const first = (name: string): unknown =>
    layers.map((layer) => metaOf(layer)[name]).find((value) => value !== undefined) ?? ''
  const defaulted = layers.find((layer) => layer instanceof z.ZodDefault || layer instanceof z.ZodPrefault)
  const isOptional = layers.some((layer) => layer instanceof z.core.$ZodOptional)
  const override = ENVIRONMENT_OVERRIDES.find(({ section, setting }) => `${section}.${setting}` === path)
  return {
    path,
    type: String(first('type')),
    presence: defaulted !== undefined ? 'defaulted' : isOptional ? 'optional' : 'required',
    ...(defaulted !== undefined && { fallback: defaulted.def.defaultValue }),
    meaning: String(first('description')) + (override === undefined ? '' : `. Environment: \`${override.variable}\``),
    isSecret: first('secret') === true,
  }
}

const metaOf = (schema: z.core.$ZodType): Readonly<Record<string, unknown>> => z.globalRegistry.get(schema) ?? {}

/** A schema, what it wraps, what that wraps … down to the map, list or value itself. */
function layersOf(schema: z.core.$ZodType): readonly z.core.$ZodType[] {
  const inner = innerOf(schema)
  return inner === undefined ? [schema] : [schema, ...layersOf(inner)]
}

function innerOf(schema: z.core.$ZodType): z.core.$ZodType | undefined {
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault) return schema.def.innerType
  if (schema instanceof z.core.$ZodOptional) return schema._zod.def.innerType
  if (!(schema instanceof z.ZodPipe)) return undefined
  return schema.def.in instanceof z.ZodTransform ? schema.def.out : schema.def.in
}
