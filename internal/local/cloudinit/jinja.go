package cloudinit

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// missingPrefix marks a placeholder without a value. It is the same text that cloud-init uses, so that searching the
// files of a node for it finds the mistake.
const missingPrefix = "CI_MISSING_JINJA_VAR/"

// metadata is the instance data for placeholders in bootstrap data, under cloud-init's names. [RenderScript] and the
// other functions with [NodeSettings] fill it in for [parse].
type metadata struct {
	// InstanceID identifies the machine for its whole life: ds.meta_data.instance_id.
	InstanceID string
	// LocalHostname is the host name of the machine: ds.meta_data.local_hostname and ds.meta_data.hostname.
	LocalHostname string
	// Values are further keys of ds.meta_data by name, dotted if nested. They take precedence over the two fields
	// above.
	Values map[string]string
}

// lookup returns the value of a dotted path. Dashes and underscores are equivalent.
func (m metadata) lookup(path []string) (string, bool) {
	switch {
	case len(path) > 2 && path[0] == "ds" && path[1] == "meta_data":
		path = path[2:]
	case len(path) > 1 && path[0] == "v1":
		path = path[1:]
	}
	key := strings.Join(path, ".")
	for _, name := range slices.Sorted(maps.Keys(m.Values)) {
		if underscored(name) == key {
			return m.Values[name], true
		}
	}
	switch key {
	case "instance_id":
		return m.InstanceID, true
	case "local_hostname", "hostname":
		return m.LocalHostname, true
	}
	return "", false
}

func underscored(s string) string { return strings.ReplaceAll(s, "-", "_") }

// expandJinja expands the placeholders of bootstrap data that is a template. It implements the jinja subset that
// instance data needs: {{ dotted.path }}, {{ path["key"] }}, {{ "text" }}, comments, raw blocks, and dashes that trim
// whitespace. Any other syntax is an error that names it, because a partially expanded template would write wrong
// files.
func expandJinja(text string, meta metadata) (string, error) {
	var out strings.Builder
	trimNext := false
	for {
		start := nextTag(text)
		if start < 0 {
			out.WriteString(trimLead(text, trimNext))
			return out.String(), nil
		}
		literal := trimLead(text[:start], trimNext)
		tag, err := readTag(text[start:])
		if err != nil {
			return "", err
		}
		if tag.trimBefore {
			literal = strings.TrimRight(literal, " \t\r\n")
		}
		out.WriteString(literal)
		value, err := tag.value(meta)
		if err != nil {
			return "", err
		}
		out.WriteString(value)
		text, trimNext = text[start+tag.length:], tag.trimAfter
		if tag.kind != '{' {
			text = strings.TrimPrefix(text, "\n")
		}
	}
}

func trimLead(s string, trim bool) string {
	if trim {
		return strings.TrimLeft(s, " \t\r\n")
	}
	return s
}

func nextTag(text string) int {
	at := -1
	for _, open := range []string{"{{", "{%", "{#"} {
		if i := strings.Index(text, open); i >= 0 && (at < 0 || i < at) {
			at = i
		}
	}
	return at
}

// tag is a {{ }}, {% raw %} … {% endraw %} or {# #} in the text.
type tag struct {
	kind                  byte // '{', '%' or '#'
	body                  string
	length                int
	trimBefore, trimAfter bool
}

func readTag(text string) (tag, error) {
	t := tag{kind: text[1]}
	closing := map[byte]string{'{': "}}", '%': "%}", '#': "#}"}[t.kind]
	end := strings.Index(text[2:], closing)
	if end < 0 {
		return t, invalidFault("the template has %q without %q", text[:2], closing)
	}
	t.length = 2 + end + 2
	body := text[2 : 2+end]
	t.trimBefore, t.trimAfter = strings.HasPrefix(body, "-"), strings.HasSuffix(body, "-")
	t.body = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(body, "-"), "-"))
	if t.kind != '%' {
		return t, nil
	}
	if t.body != "raw" {
		return t, invalidFault("the template uses {%% %s %%}; only placeholders, comments and raw blocks are supported",
			shorten(t.body))
	}
	return t.rawBlock(text)
}

const endRaw = `\{%-?\s*endraw\s*-?%\}`

func (t tag) rawBlock(text string) (tag, error) {
	loc := regexp.MustCompile(endRaw).FindStringIndex(text[t.length:])
	if loc == nil {
		return t, invalidFault("the template has {%% raw %%} without {%% endraw %%}")
	}
	t.body = strings.TrimPrefix(text[t.length:t.length+loc[0]], "\n")
	t.trimAfter = false
	t.length += loc[1]
	return t, nil
}

// literalPattern matches a quoted string. Templates use it to write literal braces.
const literalPattern = `^("[^"\\]*"|'[^'\\]*')$`

// pathPattern matches a dotted path with optional quoted subscripts.
const pathPattern = `^[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*|\[\s*("[^"]*"|'[^']*')\s*\])*$`

func (t tag) value(meta metadata) (string, error) {
	switch t.kind {
	case '#':
		return "", nil
	case '%':
		return t.body, nil
	}
	if regexp.MustCompile(literalPattern).MatchString(t.body) {
		return t.body[1 : len(t.body)-1], nil
	}
	if !regexp.MustCompile(pathPattern).MatchString(t.body) {
		return "", invalidFault("the template uses {{ %s }}; only names of instance data such as "+
			"{{ ds.meta_data.local_hostname }} are supported", shorten(t.body))
	}
	cleaned := strings.NewReplacer("[", ".", "]", "", `"`, "", "'", "", " ", "").Replace(t.body)
	value, ok := meta.lookup(strings.Split(underscored(cleaned), "."))
	if !ok {
		path := strings.Split(cleaned, ".")
		return missingPrefix + path[len(path)-1], nil
	}
	return value, nil
}
