package naming

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func values(set string) Values {
	return Values{"cluster": {"name": "c"}, "machineSet": {"name": set}}
}

func TestTemplate(t *testing.T) { // MS-06
	long := strings.Repeat("x", 63)
	cases := map[string]struct {
		reason, text, set, want string
	}{
		"default":          {"the name and a random part", "{{ .machineSet.name }}-{{ .random }}", "ms", "ms-abcde"},
		"cluster":          {"all variables", "{{ .cluster.name }}-{{ .random }}-{{ .machineSet.name }}", "ms", "c-abcde-ms"},
		"just fits":        {"63 characters are kept", "{{ .machineSet.name }}-{{ .random }}", long[:57], long[:57] + "-abcde"},
		"too long":         {"cut to 58 characters and the random part", "{{ .machineSet.name }}-{{ .random }}", long[:58], long[:58] + "abcde"},
		"random cut away":  {"comes back at the end", "{{ .machineSet.name }}{{ .cluster.name }}{{ .random }}", long, long[:58] + "abcde"},
		"functions of Go":  {"are allowed", `{{ printf "%s-%s" .cluster.name .random }}`, "ms", "c-abcde"},
		"random in a test": {"still decides the name", `{{ if eq .random "" }}x{{ else }}{{ .random }}{{ end }}`, "ms", "abcde"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			template, err := Parse(tc.text, values(tc.set))
			if err != nil {
				t.Fatal(err)
			}
			got, err := template.Name(values(tc.set), "abcde")
			if err != nil || got != tc.want || len(got) > MaxLength {
				t.Errorf("got %q, %v, want %q: %s", got, err, tc.want, tc.reason)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) { // MS-06
	for name, text := range map[string]string{
		"no random part":    "{{ .machineSet.name }}",
		"not a template":    "{{ .machineSet.name",
		"unknown variable":  "{{ .machine.name }}-{{ .random }}",
		"unknown field":     "{{ .cluster.uid }}-{{ .random }}",
		"unknown function":  "{{ upper .random }}",
		"turns without end": "{{ range 9223372036854775807 }}{{ end }}{{ .random }}",
		"turns in an else":  "{{ if eq .random \"\" }}{{ else }}{{ with .random }}{{ range 9223372036854775807 }}{{ end }}{{ end }}{{ end }}{{ .random }}",
		"a definition":      `{{ define "t" }}{{ end }}{{ .random }}`,
		"a wide text":       `{{ len (printf "%999999d" 1) }}{{ .random }}`,
		"any width":         `{{ len (printf "%*d" 999999 1) }}{{ .random }}`,
		"texts of texts":    `{{ $a := print "0123456789abcdef" "0123456789abcdef" }}` + strings.Repeat(`{{ $a = print $a $a }}`, 30) + "{{ .random }}",
		"a long template":   strings.Repeat("{{/* */}}", 500) + "{{ .random }}",
		"without end":       `{{ define "t" }}xxxxxxxx{{ template "t" . }}{{ end }}{{ template "t" . }}{{ .random }}`,
	} {
		if _, err := Parse(text, values("ms")); err == nil {
			t.Errorf("%s: %q was accepted", name, text)
		}
	}
}

func TestRandom(t *testing.T) {
	next := 0
	got := Random(func(n int) int {
		next += 7
		return next % n
	})
	if len(got) != randomLength || len(validation.IsDNS1123Label(got)) > 0 || strings.ContainsAny(got, "aeiou013") {
		t.Errorf("got %q", got)
	}
	if highest := Random(func(n int) int { return n - 1 }); highest != "99999" {
		t.Errorf("got %q from the highest numbers", highest)
	}
}

func TestParseAny(t *testing.T) { // CC-10
	template, err := ParseAny("{{ .cluster.name }}-net", values(""))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := template.Name(values(""), "abcde"); err != nil || got != "c-net" {
		t.Errorf("%s, %v", got, err)
	}
	for name, text := range map[string]string{"not a template": "{{", "unknown variable": "{{ .machine.name }}"} {
		if _, err := ParseAny(text, values("")); err == nil {
			t.Errorf("%s: %q was accepted", name, text)
		}
	}
}
