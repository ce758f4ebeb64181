// Package conditions tells tests which conditions there are.
//
// Does: reads the source of the controllers for the rows of their condition tables, so that a rule over all conditions is
// tested with those that come later, too.
//
// Never: imports a controller.
//
// Read first: All.
package conditions
