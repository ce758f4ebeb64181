package patch

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func evaluate(text string, values map[string]any) (any, error) {
	t, err := parseTemplate(text, templateFunctions())
	if err != nil {
		return nil, err
	}
	printed, err := t.print(values)
	if err != nil {
		return nil, err
	}
	out, err := valueOf(printed)
	return out.value, err
}

// TestFunctions: a new release of sprig brings functions that have to be looked at: do they depend on time or chance, do they
// change their arguments, and how does their work grow?
func TestFunctions(t *testing.T) { // TP-13
	const want = "abbrev abbrevboth add add1 add1f addf adler32sum all any append atoi b32dec b32enc b64dec b64enc base biggest camelcase cat ceil chunk clean " +
		"coalesce compact concat contains decryptAES deepCopy deepEqual default dict dig dir div divf duration durationRound empty ext fail first float64 floor " +
		"fromJson get has hasKey hasPrefix hasSuffix hello html indent initial initials int int64 isAbs join js kebabcase keys kindIs kindOf last list lower max maxf " +
		"merge mergeOverwrite min minf mod mul mulf mustAppend mustChunk mustCompact mustDeepCopy mustFirst mustFromJson mustHas mustInitial mustLast mustMerge " +
		"mustMergeOverwrite mustPrepend mustPush mustRegexFind mustRegexFindAll mustRegexMatch mustRegexReplaceAll mustRegexReplaceAllLiteral mustRegexSplit mustRest mustReverse " +
		"mustSlice mustToJson mustToPrettyJson mustToRawJson mustUniq mustWithout nindent nospace omit osBase osClean osDir osExt osIsAbs pick pluck plural prepend print " +
		"printf println push quote regexFind regexFindAll regexMatch regexQuoteMeta regexReplaceAll regexReplaceAllLiteral regexSplit repeat replace rest reverse round semver " +
		"semverCompare seq set sha1sum sha256sum sha512sum slice snakecase sortAlpha split splitList splitn squote sub subf substr swapcase ternary title toDecimal toJson " +
		"toPrettyJson toRawJson toString toStrings trim trimAll trimPrefix trimSuffix trimall trunc tuple typeIs typeIsLike typeOf uniq unset until untilStep untitle upper " +
		"urlJoin urlParse urlquery values without wrap wrapWith"
	got := slices.Sorted(maps.Keys(templateFunctions()))
	if diff := cmp.Diff(strings.Fields(want), got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTemplates(t *testing.T) { // TP-13
	values := map[string]any{"m": map[string]any{"b": int64(2), "a": int64(1), "c": int64(3)}, "s": "x", "l": []any{"q", "p"}}
	for name, c := range map[string]struct {
		text string
		want any
	}{
		"keys are sorted":            {`{{ keys .m | join "," }}`, "a,b,c"},
		"values follow the keys":     {`{{ values .m | join "," }}`, "1,2,3"},
		"merging copies":             {`{{ (merge .m (dict "d" 4)) | toJson }}`, map[string]any{"a": int64(1), "b": int64(2), "c": int64(3), "d": int64(4)}},
		"setting copies":             {`{{ $x := set .m "b" 5 }}{{ $x.b }}`, int64(5)},
		"indent":                     {"{{ .l | toJson | indent 2 }}", []any{"q", "p"}},
		"until":                      {`{{ until 3 | join "-" }}`, "0-1-2"},
		"steps":                      {`{{ untilStep 1000 1030 10 | toJson }}`, []any{int64(1000), int64(1010), int64(1020)}},
		"empty":                      {``, nil},
		"a string in quotes":         {`{{ "1" | quote }}`, "1"},
		"padding":                    {`{{ printf "%03d" 7 | quote }}`, "007"},
		"a template in the template": {`{{ define "x" }}<{{ . }}>{{ end }}{{ template "x" .s }}`, "<x>"},
		"default of what is missing": {`{{ .nothing | default "d" }}`, "d"},
	} {
		t.Run(name, func(t *testing.T) {
			before := map[string]any{"m": maps.Clone(values["m"].(map[string]any)), "s": "x", "l": []any{"q", "p"}}
			got, err := evaluate(c.text, values)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(before, values); diff != "" {
				t.Errorf("the variables changed: %s", diff)
			}
		})
	}
}

// Names that are read of a part of a variable are none of variables.
func TestVariables(t *testing.T) { // CC-11
	for text, want := range map[string]string{
		`{{ .a }}{{ .b.c }}{{ $.d }}{{ .a }}`:                                   "a b d",
		`{{ if and .a (eq .b.x "y") }}{{ .c }}{{ else }}{{ .d }}{{ end }}`:      "a b c d",
		`{{ with .a }}{{ .part }}{{ $.b }}{{ else }}{{ .c }}{{ end }}`:          "a b c",
		`{{ range $i, $e := .a }}{{ .part }}{{ $e.part }}{{ end }}`:             "a",
		`{{ define "x" }}{{ .part }}{{ $.part }}{{ end }}{{ template "x" .a }}`: "a",
		`{{ (index .a 0).part }}{{ .b | default .c }}`:                          "a b c",
		`{{ .builtin.cluster.name }}`:                                           "builtin",
		`text`:                                                                  "",
		`{{ .a`:                                                                 "",
	} {
		if got := strings.Join(Variables(text), " "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestHostileTemplates: whoever writes a class can take neither the time nor the memory of the manager.
func TestHostileTemplates(t *testing.T) { // TP-13
	const tooMuch = "exceeds its computation limit"
	for name, c := range map[string]struct{ text, want string }{
		"repeat":             {`{{ repeat 1000000000 "xxxxxxxx" }}`, tooMuch},
		"indent":             {`{{ "x" | indent 1000000000 }}`, tooMuch},
		"until":              {`{{ until 1000000000 | len }}`, tooMuch},
		"steps":              {`{{ untilStep 0 1000000000 1 | len }}`, tooMuch},
		"empty loops":        {`{{ range until 10000 }}{{ range until 10000 }}{{ range until 10000 }}{{ end }}{{ end }}{{ end }}`, tooMuch},
		"loops over a list":  {`{{ $l := until 10000 }}{{ range $l }}{{ range $l }}{{ range $l }}{{ end }}{{ end }}{{ end }}`, tooMuch},
		"doubling a string":  {`{{ $x := "xxxxxxxx" }}{{ range until 100 }}{{ $x = print $x $x }}{{ end }}`, tooMuch},
		"doubling a list":    {`{{ $x := list 1 }}{{ range until 90 }}{{ $x = list $x $x }}{{ end }}{{ $x }}`, tooMuch},
		"replace":            {`{{ $x := repeat 10000 "a" }}{{ $x | replace "a" $x }}`, tooMuch},
		"recursion":          {`{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}`, tooMuch},
		"doubling recursion": {`{{ define "a" }}{{ template "b" }}{{ template "b" }}{{ end }}{{ define "b" }}{{ template "c" }}{{ template "c" }}{{ end }}{{ define "c" }}{{ template "a" }}{{ end }}{{ template "a" }}`, tooMuch},
		"contains itself":    {`{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $d }}`, tooMuch},
		"contain each other": {`{{ $d := dict }}{{ $e := dict "d" $d }}{{ $_ := set $d "e" $e }}{{ toJson $d }}`, tooMuch},
		"long output":        {`{{ range until 10000 }}0123456789012345678901234567890123456789{{ end }}`, "bytes are printed"},
		"wide numbers":       {`{{ printf "%100000d" 1 }}`, "a width has more than three digits"},
		"a width given":      {`{{ printf "%*d" 100000 1 }}`, "a width has more than three digits"},
		"expressions":        {`{{ regexMatch (repeat 1000 "(a*)*") (repeat 100000 "a") }}`, tooMuch},
		"the environment":    {`{{ env "PATH" }}`, `function "env" not defined`},
		"the time":           {`{{ now }}`, `function "now" not defined`},
		"chance":             {`{{ randAlphaNum 5 }}`, `function "randAlphaNum" not defined`},
		"numbers by chance":  {`{{ randInt 0 5 }}`, `function "randInt" not defined`},
		"names":              {`{{ getHostByName "a" }}`, `function "getHostByName" not defined`},
		"division":           {`{{ div 1 0 }}`, "cannot be evaluated"},
		"not YAML":           {`{{ "a: b: c" }}`, "does not print YAML or JSON"},
		"many aliases":       {"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]", "excessive aliasing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := evaluate(c.text, map[string]any{"s": "x"})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestProgramsAreShared: one program serves several reconciles at once.
func TestProgramsAreShared(t *testing.T) { // TP-13
	class := classOf(t, one(onMachines, `{op: add, path: /spec/template/spec/n, valueFrom: {template: "{{ .size }}"}}`))
	program, err := Compile(class)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			globals, items := topology(t)
			result, _, err := program.Apply(globals, items, nil)
			if err != nil || changesOf(items, result)[ofBig+"n"] != int64(9) {
				t.Errorf("%v %v", changesOf(items, result), err)
			}
		})
	}
	group.Wait()
}
