package recording

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Answer is the response of another build to a recorded request.
type Answer struct {
	Code int
	Body []byte
	// Error is the reason why there is no response; empty if there is one.
	Error string
}

// Compare returns the differences between a response and the recorded one, one per line. JSON is compared semantically,
// ignoring the order of fields and white space; patches are decoded first.
func Compare(was Call, now Answer) []string {
	if was.Error != "" || now.Error != "" {
		if was.Error != "" && now.Error != "" {
			return nil // neither has a response, and error messages may vary
		}
		return []string{fmt.Sprintf("call: %s → %s", orOK(was.Error), orOK(now.Error))}
	}
	var lines []string
	if was.Code != now.Code {
		lines = append(lines, fmt.Sprintf("HTTP status: %d → %d", was.Code, now.Code))
	}
	body, _ := Redact(now.Body)
	var a, b any
	if json.Unmarshal([]byte(was.Response), &a) != nil || json.Unmarshal(body, &b) != nil {
		if before, after := strings.TrimSpace(was.Response), string(bytes.TrimSpace(body)); before != after {
			lines = append(lines, fmt.Sprintf("response: %q → %q", before, after))
		}
		return lines
	}
	return append(lines, differ("", a, b)...)
}

func orOK(text string) string {
	if text == "" {
		return "an answer"
	}
	return text
}

func differ(path string, a, b any) []string {
	am, ok := a.(map[string]any)
	bm, ok2 := b.(map[string]any)
	if ok && ok2 {
		return differInObject(path, am, bm)
	}
	al, ok := a.([]any)
	bl, ok2 := b.([]any)
	if ok && ok2 {
		return differInList(path, al, bl)
	}
	if before, after := show(a), show(b); before != after {
		if x, y, ok := patches(path, a, b); ok {
			return differ(path, x, y)
		}
		return []string{fmt.Sprintf("%s: %s → %s", path, before, after)}
	}
	return nil
}

func differInObject(path string, a, b map[string]any) (lines []string) {
	keys := map[string]bool{}
	for k := range a {
		keys[k] = true
	}
	for k := range b {
		keys[k] = true
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		lines = append(lines, differ(strings.TrimPrefix(path+"."+k, "."), a[k], b[k])...)
	}
	return lines
}

func differInList(path string, a, b []any) (lines []string) {
	for i := range max(len(a), len(b)) {
		var x, y any
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		lines = append(lines, differ(fmt.Sprintf("%s[%d]", path, i), x, y)...)
	}
	return lines
}

// patches decodes two values of patch fields, which contain base64-encoded JSON.
func patches(path string, a, b any) (x, y any, ok bool) {
	if !strings.HasSuffix(strings.ToLower(path), "patch") {
		return nil, nil, false
	}
	for in, out := range map[*any]*any{&a: &x, &b: &y} {
		text, isText := (*in).(string)
		data, err := base64.StdEncoding.DecodeString(text)
		if !isText || err != nil || json.Unmarshal(data, out) != nil {
			return nil, nil, false
		}
	}
	return x, y, true
}

func show(v any) string {
	if v == nil {
		return "nothing"
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}
