package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const indent = 2

// YAMLNode is a piece of YAML. Package bootstrap/render builds cloud-config documents from nodes, and kubeadm's
// configuration and the kubeconfig of file discovery are encoded with [YAMLMarshal]. The style of a string is chosen by
// [YAMLString] so that the parsers of cloud-init, kubeadm and Go read the same value; the tests compare them.
type YAMLNode = yaml.Node

// YAMLEntry is a key of a mapping with its value.
type YAMLEntry struct {
	Key   string
	Value *YAMLNode
}

// YAMLMap returns a mapping of the entries in order, omitting nil values.
func YAMLMap(entries ...YAMLEntry) *YAMLNode {
	n := &YAMLNode{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, e := range entries {
		if e.Value != nil {
			n.Content = append(n.Content, YAMLString(e.Key), e.Value)
		}
	}
	return n
}

// YAMLList returns a sequence of the non-nil items. It returns nil if there are none, so that [YAMLMap] omits the
// entry.
func YAMLList(items ...*YAMLNode) *YAMLNode {
	items = slices.DeleteFunc(items, func(n *YAMLNode) bool { return n == nil })
	if len(items) == 0 {
		return nil
	}
	return &YAMLNode{Kind: yaml.SequenceNode, Tag: "!!seq", Content: items}
}

// YAMLStrings returns a sequence of strings, or nil if there are none.
func YAMLStrings(items []string) *YAMLNode {
	nodes := make([]*YAMLNode, 0, len(items))
	for _, s := range items {
		nodes = append(nodes, YAMLString(s))
	}
	return YAMLList(nodes...)
}

// YAMLOptional returns the string, or nil if it is empty.
func YAMLOptional(s string) *YAMLNode {
	if s == "" {
		return nil
	}
	return YAMLString(s)
}

// YAMLBool returns a boolean.
func YAMLBool(b bool) *YAMLNode {
	return &YAMLNode{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(b)}
}

// YAMLOptionalBool returns the boolean, or nil if it is not set.
func YAMLOptionalBool(b *bool) *YAMLNode {
	if b == nil {
		return nil
	}
	return YAMLBool(*b)
}

// YAMLInt returns an integer.
func YAMLInt(i int64) *YAMLNode {
	return &YAMLNode{Kind: yaml.ScalarNode, Tag: "!!int", Value: fmt.Sprint(i)}
}

// YAMLString returns a string in the simplest safe style: plain, a literal block, or quoted. Invalid UTF-8 becomes
// U+FFFD.
func YAMLString(s string) *YAMLNode {
	n := &YAMLNode{Kind: yaml.ScalarNode, Tag: "!!str", Value: strings.ToValidUTF8(s, "\ufffd")}
	switch {
	case isPlainSafe(n.Value):
	case isLiteralSafe(n.Value):
		n.Style = yaml.LiteralStyle
	case needsSingleQuotes(n.Value):
		n.Style = yaml.SingleQuotedStyle
	default:
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// plainPattern matches words that start with a letter or a slash and contain no characters with a meaning in YAML.
const plainPattern = `^[A-Za-z/][A-Za-z0-9_./=,+@&|>$()'-]*( [A-Za-z0-9_./=,+@&|>$()'-]+)*$`

// reserved matches words that some parser reads as another type than string.
const reserved = `^(?i:y|n|yes|no|on|off|true|false|null)$`

var plainRegexp, reservedRegexp = regexp.MustCompile(plainPattern), regexp.MustCompile(reserved)

func isPlainSafe(s string) bool {
	return plainRegexp.MatchString(s) && !reservedRegexp.MatchString(s)
}

// isLiteralSafe reports whether s is multi-line text that a literal block preserves: printable, without tabs or spaces
// that affect the detection of indentation, without trailing whitespace, and with at most one line break at the end.
func isLiteralSafe(s string) bool {
	if !strings.Contains(s, "\n") || strings.HasSuffix(s, "\n\n") || s == "\n" {
		return false
	}
	if strings.HasPrefix(s, "\n") || strings.HasPrefix(s, " ") {
		return false
	}
	for line := range strings.SplitSeq(s, "\n") {
		if strings.HasPrefix(line, "\t") || strings.TrimRight(line, " \t") != line {
			return false
		}
	}
	for _, r := range s {
		if r != '\n' && r != '\t' && (r < ' ' || r == 0x7f || r > 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r > 0xffff || r >= 0xfff0) {
			return false
		}
	}
	return true
}

// needsSingleQuotes reports whether s should be single-quoted: one printable line with double quotes or backslashes. In
// double quotes these need escapes, and cloud-init, which expands the jinja templates in a cloud-config document before
// it parses the YAML, would interpret the escapes differently.
func needsSingleQuotes(s string) bool {
	if !strings.ContainsAny(s, "\"\\") {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// YAMLEncode returns the encoded document.
func YAMLEncode(n *YAMLNode) ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(indent)
	if err := enc.Encode(n); err != nil {
		return nil, fmt.Errorf("encoding YAML: %w", err)
	}
	return b.Bytes(), enc.Close()
}

// YAMLMarshal returns v as YAML, converted from its JSON encoding. Struct fields retain their order, and map keys are
// sorted.
func YAMLMarshal(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding JSON: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	n, err := fromJSON(dec)
	if err != nil {
		return nil, fmt.Errorf("reading JSON: %w", err)
	}
	return YAMLEncode(n)
}

// fromJSON reads the next value.
func fromJSON(dec *json.Decoder) (*YAMLNode, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		return compound(dec, t)
	case string:
		return YAMLString(t), nil
	case bool:
		return YAMLBool(t), nil
	case json.Number:
		return &YAMLNode{Kind: yaml.ScalarNode, Value: t.String()}, nil
	default:
		return &YAMLNode{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
	}
}

// compound reads the rest of an object or array.
func compound(dec *json.Decoder, open json.Delim) (*YAMLNode, error) {
	n := &YAMLNode{Kind: yaml.SequenceNode, Tag: "!!seq"}
	if open == '{' {
		n = &YAMLNode{Kind: yaml.MappingNode, Tag: "!!map"}
	}
	for dec.More() {
		item, err := fromJSON(dec)
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, item)
	}
	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
	}
	_, err := dec.Token()
	return n, err
}
