// Package yamltext writes YAML that every parser reads alike.
//
// Does: builds documents from nodes whose strings are quoted where YAML 1.1 and 1.2 disagree, where a parser
// would trim, fold or choke, and written as literal blocks where that is safe and easier to read. Order is
// the caller's.
//
// Never: writes a string in a form that any of its tests' parsers reads differently.
//
// Read first: [String], [Map], [Marshal].
package yamltext
