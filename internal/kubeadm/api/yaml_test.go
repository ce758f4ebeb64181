package api

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	yaml2 "go.yaml.in/yaml/v2"
	"go.yaml.in/yaml/v3"
)

func TestEncode(t *testing.T) {
	yes := true
	got, err := YAMLEncode(YAMLMap(
		YAMLEntry{"list", YAMLStrings([]string{"kubeadm join --config /run/x && echo success", "0640", "yes", "a: b", "{{ x }}", `{{ a["b"] }}`})},
		YAMLEntry{"text", YAMLString("#!/bin/sh\necho \"$A\"\n\n  x\n")},
		YAMLEntry{"no-break", YAMLString("a\nb")},
		YAMLEntry{"tab", YAMLString("\ta\n")},
		YAMLEntry{"number", YAMLInt(5)},
		YAMLEntry{"set", YAMLOptionalBool(&yes)},
		YAMLEntry{"unset", YAMLOptionalBool(nil)},
		YAMLEntry{"none", YAMLStrings(nil)},
		YAMLEntry{"empty", YAMLOptional("")},
		YAMLEntry{"blank", YAMLString("")},
	))
	if err != nil {
		t.Fatal(err)
	}
	want := `list:
  - kubeadm join --config /run/x && echo success
  - "0640"
  - "yes"
  - "a: b"
  - "{{ x }}"
  - '{{ a["b"] }}'
text: |
  #!/bin/sh
  echo "$A"

    x
no-break: |-
  a
  b
tab: "\ta\n"
number: 5
set: true
blank: ""
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMarshal(t *testing.T) {
	got, err := YAMLMarshal(struct {
		Z string         `json:"z"`
		A []int          `json:"a"`
		E []string       `json:"e"`
		M map[string]any `json:"m"`
		N *int           `json:"nil"`
	}{Z: "on", A: []int{1, 2}, E: []string{}, M: map[string]any{"b": true, "a": 1.5}})
	if err != nil {
		t.Fatal(err)
	}
	want := "z: \"on\"\na:\n  - 1\n  - 2\ne: []\nm:\n  a: 1.5\n  b: true\nnil: null\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("structs keep their order, maps are sorted (-want +got):\n%s", diff)
	}
	if _, err := YAMLMarshal(func() {}); err == nil {
		t.Error("what has no JSON form has no YAML form")
	}
}

// FuzzString: every string comes back unchanged, as an item, as a value and nested, from the parsers of
// both YAML libraries (one reads YAML 1.1 words such as "yes" as booleans).
func FuzzString(f *testing.F) {
	for _, s := range []string{"", "yes", "N", "0640", "0x1f", "1:30", "1_000", "~", "null", "<<", "=", "- a", "a: b", "a #b", "#", "%x",
		"\ta\n", "  a\nb", "\n a\n", "a\n\n\n", "a\r\nb\n", "\u0085", "\u2028\nx", "\ufeffa\nb", "a\x00b", "'", "\"", "\\n", "{{ a }}\n{% b %}\n",
		"---\na\n", "...\n", "a \nb\n", "a\n\tb\n", "2001-01-01", "🚀\nx\n", ".", "*a", "&a", "!a", "a\n#b\n", "/a b", "x  y", "\"'", " \" ", `\`, `"\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want := strings.ToValidUTF8(s, "\ufffd")
		doc, err := YAMLEncode(YAMLMap(YAMLEntry{"a", YAMLList(YAMLString(s), YAMLList(YAMLString(s)), YAMLMap(YAMLEntry{"k", YAMLString(s)}))}, YAMLEntry{"b", YAMLString(s)}))
		if err != nil {
			t.Fatal(err)
		}
		expect := map[string]any{"a": []any{want, []any{want}, map[string]any{"k": want}}, "b": want}
		var three map[string]any
		if err := yaml.Unmarshal(doc, &three); err != nil || !cmp.Equal(any(expect), any(three)) {
			t.Errorf("%q comes back as %#v from yaml v3 (%v):\n%s", s, three, err, doc)
		}
		var two struct {
			B any `yaml:"b"`
			A []any
		}
		if err := yaml2.Unmarshal(doc, &two); err != nil || two.B != any(want) || two.A[0] != any(want) {
			t.Errorf("%q comes back as %#v from yaml v2 (%v):\n%s", s, two, err, doc)
		}
	})
}
