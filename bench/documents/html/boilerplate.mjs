import { escapeHtml } from './render-blocks.mjs'

const SECTIONS = ['World', 'Business', 'Science', 'Culture', 'Sport', 'Opinion', 'Video', 'Podcasts', 'Weather', 'Jobs']
const NETWORKS = ['Facebook', 'LinkedIn', 'WhatsApp', 'Email']
const LEGAL = ['Terms of Service', 'Privacy Policy', 'Imprint', 'Accessibility', 'Contact us', 'Advertise']

/**
 * What stands around the main content of a page. `isSemantic`: header, nav, aside and footer instead of div;
 * `isAnonymous`: class names that say nothing, as programs that write style sheets make them.
 */
export class Boilerplate {
  #prose
  #random
  #isSemantic
  #isAnonymous

  constructor(prose, random, { isSemantic, isAnonymous }) {
    this.#prose = prose
    this.#random = random
    this.#isSemantic = isSemantic
    this.#isAnonymous = isAnonymous
  }

  #named(name) {
    return this.#isAnonymous ? `class="css-${this.#random.integer(10_000, 99_999).toString(36)}"` : `class="${name}"`
  }

  #element(tag, name, inner) {
    const used = this.#isSemantic ? tag : 'div'
    return `<${used} ${this.#named(name)}>${inner}</${used}>`
  }

  #links(texts, name) {
    return texts
      .map((text) => `<li><a ${this.#named(name)} href="/${encodeURIComponent(text)}">${escapeHtml(text)}</a></li>`)
      .join('')
  }

  #headings(count) {
    return Array.from({ length: count }, () => this.#prose.heading())
  }

  siteHeader() {
    const sections = this.#links(this.#random.sample(SECTIONS, 7), 'nav-link')
    const menu = this.#element('nav', 'main-nav menu', `<ul>${sections}</ul>`)
    const search = '<form><input type="search" placeholder="Search the site"><button>Search</button></form>'
    return this.#element('header', 'site-header masthead', `<a href="/">The Example Gazette</a>${menu}${search}`)
  }

  breadcrumbs() {
    const place = `<a href="/">Home</a> › <a href="/section">${this.#random.pick(SECTIONS)}</a>`
    return `<div ${this.#named('breadcrumb')}>${place} › <span>${escapeHtml(this.#prose.label())}</span></div>`
  }

  cookieBanner() {
    const text =
      'We and our 312 partners use cookies to personalise content and to measure advertising. You can change your choice at any time.'
    const buttons = '<button>Accept all</button><button>Reject all</button><a href="/cookies">Cookie settings</a>'
    return `<div id="cookie-consent" ${this.#named('cookie-banner')} role="dialog"><p>${text}</p>${buttons}</div>`
  }

  shareBar() {
    const networks = this.#links(NETWORKS, 'share-button')
    return `<div ${this.#named('share-bar social')}><span>Share this</span><ul>${networks}</ul></div>`
  }

  newsletter() {
    const text = 'Sign up for our morning newsletter. You can unsubscribe at any time.'
    const form = '<input type="email" placeholder="Your address"><button>Subscribe</button>'
    return `<div ${this.#named('newsletter signup')}><h3>Never miss a story</h3><p>${text}</p>${form}</div>`
  }

  related() {
    const cards = this.#headings(4).map((text) => {
      const address = this.#prose.identifier()
      const inner = `<img src="/thumbs/${address}.jpg" alt=""><h4>${escapeHtml(text)}</h4>`
      return `<div ${this.#named('card teaser')}><a href="/story/${address}">${inner}</a></div>`
    })
    return this.#element('aside', 'related-articles', `<h3>You might also like</h3>${cards.join('\n')}`)
  }

  /** Stands between two paragraphs of an article. */
  readAlso() {
    const [text] = this.#headings(1)
    return `<div ${this.#named('read-also inline-related')}><span>Read also:</span> <a href="/story/${this.#prose.identifier()}">${escapeHtml(text)}</a></div>`
  }

  sidebar() {
    const popular = this.#links(this.#headings(6), 'popular')
    const advertisement = `<div ${this.#named('ad advertisement')}><span>Advertisement</span><a href="https://ads.example.net/c?id=9"><img src="https://ads.example.net/banner.gif" width="300" height="250" alt="Buy now"></a></div>`
    return this.#element('aside', 'sidebar', `<div><h3>Most read</h3><ol>${popular}</ol></div>${advertisement}`)
  }

  /** The menu of a manual: more links than the page has paragraphs. */
  contents() {
    const links = this.#links(this.#headings(40), 'toctree-link')
    return this.#element('nav', 'sidebar toctree', `<h3>Contents</h3><ul>${links}</ul>`)
  }

  comments() {
    const one = () =>
      `<li ${this.#named('comment')}><b>${this.#prose.person()}</b> <span>2 hours ago</span><p>Great read, thanks! ${escapeHtml(this.#prose.sentence())}</p><a href="#reply">Reply</a></li>`
    const count = this.#random.integer(3, 40)
    return `<section id="comments" ${this.#named('comments-area')}><h3>${count} comments</h3><ol>${one()}${one()}${one()}</ol></section>`
  }

  siteFooter() {
    const legal = `<ul>${this.#links(LEGAL, 'footer-link')}</ul>`
    const rights = `<p ${this.#named('copyright')}>© 2024 The Example Gazette. All rights reserved.</p>`
    return this.#element('footer', 'site-footer', legal + rights)
  }

  /** Nothing of this is ever seen by a visitor. */
  hidden() {
    const offer = `<div style="display:none">${escapeHtml(this.#prose.sentence())} Hidden offer of the day.</div>`
    const loading = '<div hidden><p>Loading the next story, please wait.</p></div>'
    const pixel = '<noscript><img height="1" width="1" src="https://pixel.example.net/p?ev=view" alt=""></noscript>'
    return `${offer}${loading}${pixel}<script>window.dataLayer=[{"page":"<p>not text</p>"}]</script>`
  }

  lazyImage() {
    const address = `/images/${this.#prose.identifier()}.jpg`
    const blank = 'data:image/gif;base64,R0lGODlhAQABAAAAACw='
    return `<figure><img class="lazyload" src="${blank}" data-src="${address}" alt="${escapeHtml(this.#prose.label())}"></figure>`
  }
}
