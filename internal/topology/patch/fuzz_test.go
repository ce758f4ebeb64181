package patch

import (
	"slices"
	"testing"
)

// FuzzPointer: a path of a JSON patch that can be read is written as the same.
func FuzzPointer(f *testing.F) { // TP-13
	for _, text := range []string{"/spec/template/spec/a~1b/-", "/a~0b", "/", "a", "//", "/~2"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePointer(text)
		if err != nil {
			return
		}
		again, err := parsePointer(p.String())
		if err != nil || !slices.Equal(p, again) {
			t.Errorf("%q is %q, and written again %q: %v", text, p, again, err)
		}
	})
}

// FuzzTemplate: whatever a class has as a template is refused, or evaluated to a value of bounded size, the same each time.
func FuzzTemplate(f *testing.F) { // TP-13
	for _, text := range []string{
		`{{ .s }}`, `{{ range $i, $x := .l }}{{ $x }}{{ end }}`, `{{ range 9223372036854775807 }}{{ end }}`, `{{ printf "%9d" .n }}`, `{{ toJson .m }}`,
		`{{ define "t" }}{{ template "t" }}{{ end }}{{ template "t" }}`, `{{ until 3 | join "-" }}`, `{{ $a := .s }}{{ $a = print $a $a }}{{ $a }}`,
		`{{ regexMatch "^(a+)+$" .s }}`, `{{ index .l 7 }}`, `{{ repeat 9 .s }}`,
	} {
		f.Add(text)
	}
	values := map[string]any{"m": map[string]any{"b": int64(2), "a": int64(1)}, "s": "xy", "l": []any{"q", "p"}, "n": int64(7)}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := parseTemplate(text, templateFunctions())
		if err != nil {
			return
		}
		first, err := parsed.print(values)
		if len(first) > maxRendered {
			t.Errorf("%q prints %d bytes", text, len(first))
		}
		second, again := parsed.print(values)
		if (err == nil) != (again == nil) || first != second {
			t.Errorf("%q prints %q, then %q: %v, %v", text, first, second, err, again)
		}
		if err == nil {
			_, _ = valueOf(first)
		}
	})
}
