package hook

// countValues approximates the number of values in a JSON document, at any depth, by the commas and opening brackets
// outside strings. It stops at the first one above the limit.
func countValues(body []byte, most int) (values int) {
	inString := false
	for i := 0; i < len(body) && values <= most; i++ {
		switch c := body[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == ',', c == '{', c == '[':
			values++
		}
	}
	return values
}
