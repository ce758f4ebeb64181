// Package yamltext writes YAML that all parsers read identically. Strings are quoted if YAML 1.1 and 1.2 interpret
// them differently, or if a parser would trim, fold or reject them. Literal blocks are used where they are safe and
// more readable. The order of the caller is preserved. The tests verify the output with several parsers. Start
// reading at [YAMLString], [YAMLMap] and [YAMLMarshal].
package api
