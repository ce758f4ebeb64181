// Package chart draws lines as SVG.
//
// Does: draws panels one above the other with one level axis, of time or of anything else, and marks places on it.
//
// Never: knows what is drawn.
//
// Read first: [Chart], [Chart.WriteSVG].
package chart
