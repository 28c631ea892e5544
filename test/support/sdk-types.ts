import { readFileSync } from 'node:fs'
import ts from 'typescript'

type Declaration = ts.InterfaceDeclaration | ts.TypeAliasDeclaration

/** What tells the alternatives of a union of objects apart. */
const DISCRIMINATORS = ['type', 'role']

/** The declarations of a vendor's SDK, in files that stand for one another's names without their namespaces. */
export class SdkTypes {
  private readonly declarations = new Map<string, Declaration>()

  constructor(...paths: readonly string[]) {
    for (const path of paths) {
      const file = ts.createSourceFile(path, readFileSync(`node_modules/${path}`, 'utf8'), ts.ScriptTarget.Latest)
      this.declare(file.statements, '')
    }
  }

  /** Names of an interface's own members and of those that it extends. */
  membersOf(name: string): readonly string[] {
    return this.signaturesOf(name).map(nameOf)
  }

  /** Those of them that are not optional. */
  requiredMembersOf(name: string): readonly string[] {
    return this.signaturesOf(name)
      .filter(({ questionToken }) => questionToken === undefined)
      .map(nameOf)
  }

  /** A union's literals, and for its objects the literals of their `type` or `role`; those of several are named once. */
  alternativesOf(name: string): readonly string[] {
    const declaration = this.declarationOf(name, '')
    if (!ts.isTypeAliasDeclaration(declaration)) throw new Error(`${name} is no union`)
    return [...new Set(this.wordsOf(declaration.type, ''))]
  }

  /** As `alternativesOf`, of the type of an interface's member; of the elements, where it is a list. */
  alternativesIn(name: string, member: string): readonly string[] {
    const signature = this.signaturesOf(name).find((one) => nameOf(one) === member)
    if (signature?.type === undefined) throw new Error(`${name} has no ${member}`)
    return [...new Set(this.wordsOf(signature.type, `${name}.`))]
  }

  private declare(statements: ts.NodeArray<ts.Statement>, prefix: string): void {
    for (const statement of statements) {
      if (ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement)) {
        this.declarations.set(prefix + statement.name.text, statement)
      } else if (
        ts.isModuleDeclaration(statement) &&
        statement.body !== undefined &&
        ts.isModuleBlock(statement.body)
      ) {
        this.declare(statement.body.statements, `${prefix}${statement.name.text}.`)
      }
    }
  }

  /** A name as it is written in the namespace `scope`, which ends with a dot; an imported namespace means a file of its own. */
  private declarationOf(name: string, scope: string): Declaration {
    const names = [...scopesOf(scope).map((prefix) => prefix + name), name.slice(name.indexOf('.') + 1)]
    const found = names.map((one) => this.declarations.get(one)).find((one) => one !== undefined)
    if (found === undefined) throw new Error(`The SDK has no type ${name}`)
    return found
  }

  private signaturesOf(name: string): readonly ts.PropertySignature[] {
    const declaration = this.declarationOf(name, '')
    if (!ts.isInterfaceDeclaration(declaration)) throw new Error(`${name} is no interface`)
    const bases = (declaration.heritageClauses ?? []).flatMap(({ types }) => types)
    const inherited = bases.flatMap(({ expression }) => this.signaturesOf(dotted(expression)))
    return [...inherited, ...declaration.members.filter((member) => ts.isPropertySignature(member))]
  }

  private wordsOf(type: ts.TypeNode, scope: string): readonly string[] {
    if (ts.isUnionTypeNode(type)) return type.types.flatMap((one) => this.wordsOf(one, scope))
    if (ts.isLiteralTypeNode(type)) return ts.isStringLiteral(type.literal) ? [type.literal.text] : []
    if (!ts.isTypeReferenceNode(type)) return []
    const name = dotted(type.typeName)
    if (name === 'Array') return (type.typeArguments ?? []).flatMap((one) => this.wordsOf(one, scope))
    const declaration = this.declarationOf(name, scope)
    if (ts.isTypeAliasDeclaration(declaration)) return this.wordsOf(declaration.type, scope)
    return this.discriminatorOf(declaration, name, scope)
  }

  private discriminatorOf(declaration: ts.InterfaceDeclaration, name: string, scope: string): readonly string[] {
    const signatures = declaration.members.filter((member) => ts.isPropertySignature(member))
    for (const discriminator of DISCRIMINATORS) {
      const type = signatures.find((signature) => nameOf(signature) === discriminator)?.type
      const words = type === undefined ? [] : this.wordsOf(type, scope)
      if (words.length > 0) return words
    }
    // An object without a word of its own, such as a tool that is known by its name.
    return [name]
  }
}

const nameOf = ({ name }: ts.PropertySignature): string =>
  ts.isIdentifier(name) || ts.isStringLiteral(name) ? name.text : ''

const dotted = (name: ts.EntityName | ts.Expression): string => {
  if (ts.isIdentifier(name)) return name.text
  if (ts.isQualifiedName(name)) return `${dotted(name.left)}.${name.right.text}`
  if (ts.isPropertyAccessExpression(name)) return `${dotted(name.expression)}.${name.name.text}`
  throw new Error('No name of a type')
}

/** `A.B.` within `A.`, within the file. */
function scopesOf(scope: string): readonly string[] {
  const scopes = [scope]
  for (let outer = scope; outer !== ''; scopes.push(outer)) outer = outer.replace(/[^.]+\.$/, '')
  return scopes
}

export const OPENAI_TYPES = new SdkTypes(
  'openai/resources/shared.d.ts',
  'openai/resources/chat/completions/completions.d.ts',
  'openai/resources/responses/responses.d.ts',
)

const MESSAGES = 'resources/messages/messages.d.ts'
const BETA_MESSAGES = 'resources/beta/messages/messages.d.ts'

export const ANTHROPIC_TYPES = new SdkTypes(`@anthropic-ai/sdk/${MESSAGES}`)

/** Of the beta client, in both versions of the SDK. */
export const ANTHROPIC_BETA_TYPES: readonly SdkTypes[] = ['@anthropic-ai/sdk', 'anthropic-sdk-1'].map(
  (name) => new SdkTypes(`${name}/${BETA_MESSAGES}`),
)
