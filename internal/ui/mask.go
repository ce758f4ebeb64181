package ui

import "github.com/slipwayhq/slipway/internal/redact"

// masked replaces a credential.
const masked = "***"

// maxMaskedText is the maximum length of one string in bytes, because credentials are searched in every string.
const maxMaskedText = 256 << 10

// maskCredentials returns a copy of a value from an object without credentials that are written into the object itself. The
// first rule that matches decides about a string or number:
//
//	its field has the name of a secret (password, apiToken)                        masked
//	value, default, example or content next to such a name, key or path (a         masked
//	variable, the schema of a variable, a file)
//	it has the form of a secret, or contains an assignment to the name of one      masked within the text
//
// Names of Secrets and references to them remain.
func maskCredentials(v any) any { return mask(v, false) }

// mask masks a value. Named is true if it is the value of a secret.
func mask(v any, named bool) any {
	switch v := v.(type) {
	case map[string]any:
		return maskMap(v, named)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = mask(v[i], named)
		}
		return out
	case string:
		if named && v != "" {
			return masked
		}
		return maskText(v)
	case int64, float64:
		if named {
			return masked
		}
	}
	return v
}

func maskMap(m map[string]any, named bool) map[string]any {
	out := make(map[string]any, len(m))
	named = named || hasSecretName(m)
	for key, value := range m {
		if named && isValueField(key) {
			out[key] = maskAll(value)
		} else {
			out[key] = mask(value, redact.IsSecretName(key))
		}
	}
	return out
}

// maskAll masks all strings and numbers of a value.
func maskAll(v any) any {
	if m, ok := v.(map[string]any); ok {
		out := make(map[string]any, len(m))
		for key, value := range m {
			out[key] = maskAll(value)
		}
		return out
	}
	if list, ok := v.([]any); ok {
		out := make([]any, len(list))
		for i := range list {
			out[i] = maskAll(list[i])
		}
		return out
	}
	return mask(v, true)
}

// hasSecretName reports whether a map is a pair of the name of a secret and its value, such as a variable or a file.
func hasSecretName(m map[string]any) bool {
	for _, field := range []string{"name", "key", "path"} {
		if name, ok := m[field].(string); ok && redact.IsSecretName(name) {
			return true
		}
	}
	return false
}

func isValueField(name string) bool {
	switch name {
	case "value", "default", "example", "content":
		return true
	}
	return false
}

// maskText masks the parts of a text that have the form of a secret.
func maskText(text string) string {
	text, _ = redact.Mask(redact.ClipWords(text, maxMaskedText))
	return text
}
