// The configuration of VitePress. The order of the pages comes from docs/README.md.
import navigation from './navigation.json' with { type: 'json' }

// The anchors are those of GitHub, which the pages link to.
const slugify = (heading) =>
  heading.trim().toLowerCase().replace(/[^\p{L}\p{M}\p{N}_\- ]/gu, '').replaceAll(' ', '-')

export default {
  title: `Weir ${process.env.SITE_VERSION}`,
  description: 'A fleet-wide rate limiter for Kubernetes',
  base: process.env.SITE_BASE,
  outDir: process.env.SITE_OUT,
  markdown: { anchor: { slugify } },
  themeConfig: {
    nav: [{ text: 'Contents', link: '/contents' }],
    sidebar: [{ text: 'Start', items: [{ text: 'Weir', link: '/' }, { text: 'Glossary', link: '/glossary' }] }, ...navigation],
    outline: [2, 3],
    search: { provider: 'local' },
  },
}
