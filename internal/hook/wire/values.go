package wire

// CountValues counts the commas and the opening brackets of a JSON document that are not part of a string: these are about its
// values, at every depth. It ends after the first beyond most.
func CountValues(body []byte, most int) (values int) {
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
