// Package browser tests the page of "slipway ui" in headless Chromium: every page, live updates, filters, the keyboard,
// the accessibility tree, both colour schemes, widths from 360 to 2560 pixels, hostile names, and 1,000 clusters. A test
// fails if the browser reports an error, a violation of the Content-Security-Policy or a request to another server. The
// pictures of docs/ui.md are taken by the same tests with the flag -update. "make test-browser" runs them, and
// "make test" two of them. "make bench-ui" measures the process with 1,000 clusters.
package browser
