// Package chart draws lines over time as SVG.
//
// Does: draws panels one above the other with one axis of time, and marks where something happened.
//
// Owns: nothing.
//
// Never: knows what is drawn.
//
// Read first: [Chart], [Chart.WriteSVG].
package chart
