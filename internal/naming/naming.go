package naming

import (
	"fmt"
	"strings"
	"text/template"
)

const (
	// randomLength is the length of the random part of a name.
	randomLength = 5
	// MaxLength is the maximum length of a name, the limit for label values and host names.
	MaxLength = 63

	// alphabet of random parts has no vowels, which could form words, and no characters that are easily confused.
	alphabet = "bcdfghjklmnpqrstvwxz2456789"
	// maxTemplate limits a template, its result and each intermediate string, in bytes.
	maxTemplate = 4096
)

// Random returns a random part; intn returns a random number in [0, n). Controllers use it for names without a template
// as well. The MachineSet and KubeadmControlPlane controllers call it with random numbers. Packages rollout and
// topology and the LocalMachinePool controller pass digits of a hash.
func Random(intn func(n int) int) string {
	out := make([]byte, randomLength)
	for i := range out {
		out[i] = alphabet[intn(len(alphabet))]
	}
	return string(out)
}

// Values contains the variables of a template by name, such as {"cluster": {"name": "c"}}; .random is added. The
// callers of [Parse] and [ParseAny] fill them in for the kind.
type Values map[string]map[string]string

// Template renders names. The MachineSet, KubeadmControlPlane and topology controllers render the names of new objects
// from templates in specs (such as spec.machineNaming of a MachineSet), and admission validates these templates. Their
// language and variables are Cluster API's.
type Template struct{ parsed *template.Template }

// Parse parses a template. It renders the template twice to check that it uses only variables in values, and that it
// uses .random, without which two objects would have the same name.
func Parse(text string, values Values) (Template, error) {
	t, err := ParseAny(text, values)
	if err != nil {
		return Template{}, err
	}
	first, err := t.render(values, "bbbbb")
	if err != nil {
		return Template{}, err
	}
	if second, err := t.render(values, "ccccc"); err != nil || first == second {
		return Template{}, fmt.Errorf("has to use {{ .random }}: names would not be unique without it")
	}
	return t, nil
}

// ParseAny parses the template of an object that is the only one with these values and therefore need not use .random.
// It renders the template once to check that it uses only variables in values.
func ParseAny(text string, values Values) (Template, error) {
	if len(text) > maxTemplate {
		return Template{}, fmt.Errorf("has more than %d bytes", maxTemplate)
	}
	parsed, err := template.New("name").Option("missingkey=error").Funcs(boundedFunctions()).Parse(text)
	if err != nil {
		return Template{}, fmt.Errorf("is not a template: %w", err)
	}
	if word := unbounded(parsed); word != "" {
		return Template{}, fmt.Errorf("uses %q, which a name does not need: it could take any time", word)
	}
	t := Template{parsed: parsed}
	_, err = t.render(values, "bbbbb")
	return t, err
}

// Name renders a name. A name that is too long is truncated, and the random part is appended again.
// [Template.FreshNames], package topology and the webhooks call it.
func (t Template) Name(values Values, random string) (string, error) {
	name, err := t.render(values, random)
	if err != nil || len(name) <= MaxLength {
		return name, err
	}
	return name[:MaxLength-randomLength] + random, nil
}

// FreshNames renders up to n names that are not taken, each with the next random part. It returns fewer if there are
// not enough random parts. The MachineSet and KubeadmControlPlane controllers call it before they create Machines.
func (t Template) FreshNames(values Values, random, taken []string, n int) ([]string, error) {
	used := map[string]bool{}
	for _, name := range taken {
		used[name] = true
	}
	var out []string
	for _, part := range random {
		name, err := t.Name(values, part)
		if err != nil {
			return nil, err
		}
		if len(out) < n && !used[name] {
			used[name] = true
			out = append(out, name)
		}
	}
	return out, nil
}

func (t Template) render(values Values, random string) (string, error) {
	data := map[string]any{"random": random}
	for name, fields := range values {
		data[name] = fields
	}
	var out strings.Builder
	if err := t.parsed.Execute(&limited{&out}, data); err != nil {
		return "", fmt.Errorf("cannot be rendered: %w", err)
	}
	return out.String(), nil
}

// limited stops a template whose output is too long.
type limited struct{ to *strings.Builder }

func (l *limited) Write(p []byte) (int, error) {
	if l.to.Len()+len(p) > maxTemplate {
		return 0, fmt.Errorf("more than %d bytes", maxTemplate)
	}
	return l.to.Write(p)
}
