// Package docs provides `slipway docs`, which prints the documentation that the binary includes. [topics] lists the
// pages. A page is printed as formatted text ([render]) or as Markdown, and TOPIC#SECTION selects one section of a page.
// The formatter supports the subset of Markdown that the pages use: headings, paragraphs, lists, tables, code blocks,
// links, code spans and strong emphasis.
package docs
