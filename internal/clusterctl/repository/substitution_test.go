package repository_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/fault"
)

func lookup(values map[string]string) repository.Lookup {
	return func(name string) (string, bool) { v, ok := values[name]; return v, ok }
}

// CC2-10: every form in which templates have variables.
func TestForms(t *testing.T) {
	values := lookup(map[string]string{"A": "alpha", "EMPTY": "", "PATH_": "x/y/z.tar.gz", "lower": "l"})
	cases := map[string]struct{ reason, template, want string }{
		"plain":               {"the usual form", "a: ${A}", "a: alpha"},
		"spaces":              {"earlier versions allowed them", "${ A} ${A } ${ A } ${\tA}", "alpha alpha alpha alpha"},
		"lower case":          {"names are as they are", "${lower}", "l"},
		"default :=":          {"no value", "${B:=x}", "x"},
		"default =":           {"no value", "${B=x}", "x"},
		"default :-":          {"no value", "${B:-x}", "x"},
		"quoted default":      {"quotes are YAML's", `v: ${B:="x y"}`, `v: "x y"`},
		"empty default":       {"nothing is meant", "v: '${B:=}' '${C:-}'", "v: '' ''"},
		"value with default":  {"the value wins", "${A:=x} ${A=x} ${A:-x}", "alpha alpha alpha"},
		"empty value":         {"set, and empty", "v: '${EMPTY}'", "v: ''"},
		"empty, with default": {"an empty value is replaced", "${EMPTY:=x} ${EMPTY:-x}", "x x"},
		"default of variable": {"a default may be another variable", "${B:=${A}}", "alpha"},
		"no default of inner": {"what the default is made of may be empty", "v: '${B:=${C}}'", "v: ''"},
		"first use":           {"what the first use says holds for all", "${B:=x} '${B}'", "x ''"},
		"upper":               {"a change of the value", "${A^^} ${A^}", "ALPHA Alpha"},
		"lower":               {"a change of the value", "${A,,} ${A,}", "alpha alpha"},
		"length":              {"a change of the value", "${#A}", "5"},
		"part":                {"a change of the value", "${A:0:2} ${A:3}", "al ha"},
		"replace":             {"a change of the value", "${A/a/o} ${A//a/o} ${A/#al/el} ${A/%ha/he}", "olpha olpho elpha alphe"},
		"cut":                 {"a change of the value", "${PATH_#*/} ${PATH_##*/} ${PATH_%.*} ${PATH_%%.*}", "y/z.tar.gz z.tar.gz x/y/z.tar x/y/z"},
		"escaped":             {"scripts have variables of their own", "echo $${HOME} $HOME $(x)", "echo ${HOME} $HOME $(x)"},
		"no braces":           {"only braces count", "$A", "$A"},
		"many lines":          {"lines stay", "a: ${A}\nb:\n- ${B:=1}\n", "a: alpha\nb:\n- 1\n"},
		"changed, not set":    {"clusterctl takes it", "v: '${B/a/b}'", "v: ''"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := repository.Envsubst{}.Process([]byte(tc.template), values)
			if err != nil || string(got) != tc.want {
				t.Errorf("%q, %v, want %q: %s", got, err, tc.want, tc.reason)
			}
		})
	}
}

// CC2-10: all that is missing is said at once, and no value.
func TestMissing(t *testing.T) {
	_, err := repository.Envsubst{}.Process([]byte("${Z} ${A} ${B:=x} ${C} ${SET} ${C}"), lookup(map[string]string{"SET": "s3cret"}))
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "no value is set for: A, C, Z;") || strings.Contains(err.Error(), "s3cret") {
		t.Error(err)
	}
}

// What cannot be read is said with its line; what the library cannot do is an error, no crash.
func TestMalformed(t *testing.T) {
	for template, want := range map[string]string{
		"a: b\nc: ${A\n":           "line 2 of the template",
		"a: b\nc: d\ne: ${A:0:-9}": "refers to a substring",
		"${}":                      "line 1 of the template",
	} {
		_, err := repository.Envsubst{}.Process([]byte(template), lookup(map[string]string{"A": "s3cret"}))
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v, want %q", template, err, want)
		}
	}
}

// CC2-10, CX-05: which variables a template has, and their defaults.
func TestSubstitutionVariables(t *testing.T) {
	got, err := repository.Envsubst{}.Variables([]byte("${C} ${ A } ${B:=x} ${B} ${D:=} ${E:=pre-${A}} $${NOT} ${F^^} ${C:=late}"))
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) *string { return &s }
	want := []repository.Variable{{Name: "A"}, {Name: "B", Default: text("x")}, {Name: "C"}, {Name: "D", Default: text("")}, {Name: "E", Default: text("pre-${A}")}, {Name: "F"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// shouting is a processor of someone else.
type shouting struct{}

func (shouting) Variables([]byte) ([]repository.Variable, error) { return nil, nil }

func (shouting) Process(template []byte, _ repository.Lookup) ([]byte, error) {
	return []byte(strings.ToUpper(string(template))), nil
}

// CX-28: the processor of templates is replaceable.
func TestProcessorIsReplaceable(t *testing.T) {
	for _, p := range []repository.Processor{repository.Envsubst{}, shouting{}} {
		if out, err := p.Process([]byte("a"), lookup(nil)); err != nil || !strings.EqualFold(string(out), "a") {
			t.Errorf("%s, %v", out, err)
		}
	}
}
