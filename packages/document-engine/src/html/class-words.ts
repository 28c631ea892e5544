/** Bit n is set for each wanted name that is `names[n]`; at most 31 names. */
export const bitsOf = <Name>(names: readonly Name[], wanted: readonly Name[]): number =>
  wanted.reduce((bits, name) => bits | (1 << names.indexOf(name)), 0)

/** Words in classes and ids, by the part of a page they name. A word may be in several groups. */
const WORDS_BY_GROUP = {
  navigation:
    'nav navi navigation navbar menu menus submenu megamenu breadcrumb breadcrumbs crumb crumbs toolbar tab tabs sitemap ' +
    'skip skiplink hamburger dropdown',
  footer: 'footer foot colophon copyright legal bottom disclaimer footnote endnote',
  header: 'header head masthead topbar banner logo branding hero top subheader',
  sidebar: 'sidebar side aside rail widget widgets secondary complementary sidenav module',
  sharing:
    'share sharing shares social facebook twitter pinterest linkedin whatsapp addthis sharedaddy follow like likes ' +
    'reaction reactions sns email print rss',
  comments: 'comment comments commentlist disqus respond discussion livefyre replies',
  related:
    'related recommended recommendation recommendations recommend more similar popular trending latest recent also read ' +
    'readmore next prev previous pager upsell crosssell teaser teasers promo outbrain taboola suggest suggested ' +
    'suggestions carousel slider swiper slick',
  advertising:
    'ad ads advert advertisement adsbygoogle sponsor sponsored promoted promotion promo dfp banner affiliate cta gpt',
  overlay:
    'cookie cookies consent gdpr modal popup overlay dialog lightbox notice alert toast onetrust privacy offcanvas ' +
    'drawer tooltip',
  forms:
    'newsletter subscribe subscription signup sign register login signin mailchimp optin paywall donate contact search ' +
    'searchform form filter filters sort facet facets refine',
  about:
    'meta byline author authors date time published posted tag tags tagged category categories taxonomy topic topics ' +
    'info detail details bio avatar profile user timestamp label labels badge',
  media:
    'caption credit credits figcaption figure image img photo gallery media video thumbnail thumb picture attachment',
  hidden:
    'hidden hide invisible sr visuallyhidden visually reader screenreader offscreen collapse collapsed collapsible ' +
    'accordion noprint',
  shop:
    'product products price pricing prices cart shop shopping sku buy wishlist stock variant swatch quantity checkout ' +
    'item items grid card cards tile tiles',
  paging: 'pagination paging page pages pager paginator loadmore viewmore',
  contents: 'toc contents outline index anchor anchors jump tableofcontents',
  body:
    'content contents article post entry hentry main story text body articlebody maincontent primary prose richtext rte ' +
    'wysiwyg markdown copy paragraph blog single',
  description:
    'description desc summary detail details overview intro lead standfirst excerpt subtitle dek abstract spec specs ' +
    'specification specifications feature features faq faqs answer question qa about',
  forum:
    'thread threads message messages reply replies answer answers postbody postcontent forum topic topics question post ' +
    'posts conversation bbcode quote signature sig',
  reviews: 'review reviews rating ratings testimonial testimonials star stars feedback',
  title: 'title headline heading hed',
} as const satisfies Record<string, string>

export type WordGroup = keyof typeof WORDS_BY_GROUP

export const WORD_GROUPS = Object.keys(WORDS_BY_GROUP) as readonly WordGroup[]

/** Groups of words that name surroundings of the content, not content. */
export const FOREIGN_GROUPS: readonly WordGroup[] = [
  'navigation',
  'footer',
  'sidebar',
  'sharing',
  'comments',
  'related',
  'advertising',
  'overlay',
  'forms',
]

const GROUPS_BY_WORD = new Map<string, number>()
for (const [index, group] of WORD_GROUPS.entries()) {
  for (const word of WORDS_BY_GROUP[group].split(' ')) {
    GROUPS_BY_WORD.set(word, (GROUPS_BY_WORD.get(word) ?? 0) | (1 << index))
  }
}

const LONGEST_NAMES = 300

/** Bit n is set when a class or the id holds a word of `WORD_GROUPS[n]`; `navBar`, `nav-bar` and `nav_bar` are words. */
export function wordGroups(names: string): number {
  let groups = 0
  const words = names
    .slice(0, LONGEST_NAMES)
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z]+/)
  for (const word of words) groups |= GROUPS_BY_WORD.get(word) ?? 0
  return groups
}
